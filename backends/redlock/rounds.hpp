// One acquisition, renewal or release at all nodes at once, on the engine thread. Each object lives
// as long as answers may come; its owner is told once.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/spi/backend.hpp"
#include "line.hpp"
#include "place.hpp"
#include "votes.hpp"

namespace holdfast::redlock {

/// What the engine's side shares.
struct Fabric {
    asio::any_io_executor executor;
    std::shared_ptr<NodeSet> set;
    std::vector<std::shared_ptr<Line>> lines;
    std::function<void(std::string)> warn;  ///< told once per text

    /// Fewer than a majority are up: then those that are down are waited for.
    bool patient() const noexcept { return set->up() < set->quorum(); }
    /// Gives a value back at one node, for sure.
    void owe(std::size_t node, const std::string& key, const std::string& value,
             boot_clock::time_point again, milliseconds ttl) const;
    /// Takes a lock that a majority has granted at one more node. Its bit in `repairs` is set.
    void extend(std::size_t node, const Keys&, const std::string& value, milliseconds ttl,
                const TokenTexts&, boot_clock::time_point deadline,
                const std::shared_ptr<void>& place) const;
};

/// While it lives, what is asked at a node waits; then it goes out, in as few calls as can be.
class Together {
public:
    explicit Together(const Fabric&);
    ~Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

private:
    const Fabric& fabric_;
};

/// What rounds have in common: a deadline, and being told once.
class Round : public std::enable_shared_from_this<Round> {
public:
    virtual ~Round() = default;
    bool finished() const noexcept { return finished_; }

protected:
    Round(std::shared_ptr<const Fabric> f, boot_clock::time_point deadline,
          std::function<void()> done)
        : fabric_(std::move(f)),
          deadline_(deadline),
          timer_(fabric_->executor),
          done_(std::move(done)) {}
    template <class R>
    std::shared_ptr<R> self() {
        return std::static_pointer_cast<R>(shared_from_this());
    }
    void arm(std::function<void()> at_deadline);
    void finish();

    const std::shared_ptr<const Fabric> fabric_;
    const boot_clock::time_point deadline_;
    asio::steady_timer timer_;
    bool starting_ = true, finished_ = false;

private:
    std::function<void()> done_;
};

/// Asks every node for the lock, with a higher token as often as need be, and undoes everything
/// where that was no majority.
class Acquire final : public Round {
public:
    Acquire(std::shared_ptr<const Fabric>, spi::Attempt&, std::function<void()> done);
    void start();

private:
    void propose(std::uint64_t token, boot_clock::time_point now);
    void ask(std::size_t node);
    void answered(std::size_t node, unsigned proposal, const Reply*, const error_code&, bool sent);
    void judge();
    void raise();
    void lost(Tally::Verdict);
    void win();

    spi::Attempt* attempt_;
    std::shared_ptr<void> place_;
    Keys keys_;
    std::string value_;
    milliseconds ttl_;
    Line::Words words_;
    std::uint64_t token_ = 0;
    unsigned proposal_ = 0;
    bool won_ = false;
    Tally tally_;
    std::vector<bool> sent_;  // a request may have acted there, or may still
};

class Renew final : public Round {
public:
    Renew(std::shared_ptr<const Fabric>, spi::Held&, std::function<void()> done);
    void start();

private:
    enum class Say : std::uint8_t { waiting, renewed, empty, gone, revoked, missing };
    void answered(std::size_t node, const Reply*, const error_code&);
    void judge();
    void repair(std::size_t node);
    void give_up();

    spi::Held* held_;
    std::shared_ptr<void> place_;
    Keys keys_;
    std::string value_;
    milliseconds ttl_;
    TokenTexts texts_;
    bool renewed_ = false;
    std::vector<Say> said_;
};

/// Compare-and-delete at every node; where there is no answer it is owed.
class Release final : public Round {
public:
    Release(std::shared_ptr<const Fabric>, std::string_view name, std::shared_ptr<void> place,
            milliseconds ttl, boot_clock::time_point deadline, std::function<void()> done);
    void start();
    ReleaseResult result() const { return tally_.result(fabric_->set->size()); }

private:
    void answered(std::size_t node, const Reply*);
    void owe(std::size_t node);
    void judge();

    std::shared_ptr<void> place_;
    Keys keys_;
    std::string value_;
    milliseconds ttl_;
    Released tally_;
    std::vector<bool> settled_;
    std::size_t open_ = 0;
};

}  // namespace holdfast::redlock
