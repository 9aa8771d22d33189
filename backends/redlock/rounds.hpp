// One acquisition, renewal or release at all nodes at once: which nodes to ask for what, the result
// of their answers, and what must be undone afterwards. No sockets, clock or thread: the driver
// (drive.hpp for the engine, lane.hpp for blocking callers) passes in the time and the answers, in
// any order.
#pragma once
#include <boost/container/small_vector.hpp>
#include <memory>
#include <string>

#include "holdfast/spi/backend.hpp"
#include "owner_state.hpp"
#include "requests.hpp"
#include "votes.hpp"

namespace holdfast::redlock {

/// When the matter is decided: how long the other nodes' answers are waited for, so that their next
/// request need not wait for this one, and nothing need be undone for want of an answer.
inline constexpr milliseconds grace{5}, long_grace{100};

/// What a round leaves to do at single nodes, even after its caller has gone.
class CleanUp {
public:
    virtual ~CleanUp() = default;
    /// Makes sure that a release reaches one node. Where a request of ours may arrive until
    /// `again`, repeats it after that.
    virtual void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
                     milliseconds ttl) = 0;
    /// No request of this value is under way to that node any more, so one release is enough.
    virtual void arrived(std::size_t, const std::string&) {}
    /// Acquires at one more node a lock that a majority has granted. Its bit in `repairs` is set.
    virtual void acquire_late(std::size_t node, const Ask& enter,
                              const std::shared_ptr<void>& place) = 0;
};

/// For how long a node keeps a grant: what is renewed later has until `closed` in any case.
milliseconds kept_for(milliseconds ttl, milliseconds lock_delay, milliseconds closed) noexcept;
inline milliseconds kept_for(const spi::Attempt& a) noexcept {
    return kept_for(a.ttl, a.lock_delay, a.min_hold);
}

/// What is left of min_hold, and for how long a node keeps this grant from now on.
milliseconds closed_for(const std::shared_ptr<void>& place, boot_clock::time_point now);
milliseconds kept_now(const spi::Held&);

/// Shared by all rounds of one client, which it outlives.
struct RoundContext {
    Voters& voters;
    CleanUp& after;
    std::string_view prefix;
    bool fencing = true;
    std::string_view channel{};  ///< where nodes tell waiters of this client
    bool told = false;           ///< it listens there at a majority
};

/// Call begin(). After it and after each phase(), send the request to the nodes for which wants()
/// is true, and report that by asked(). Report each answer, or its absence, until phase() is not
/// `open` or the deadline has come. Then call finish() once. Later answers are reported, too.
class Round {
public:
    enum class Phase : std::uint8_t {
        open,     ///< more answers are needed
        decided,  ///< they are not, but would save requests
        closed    ///< they would not
    };
    virtual ~Round() = default;
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

    virtual void begin(boot_clock::time_point now) = 0;
    bool wants(std::size_t node) const noexcept { return peers_[node].wanted; }
    const Ask& request() const noexcept { return request_; }
    /// This node is being asked. Pass the number with its answer.
    unsigned asked(std::size_t node) noexcept;
    /// `in_order`: over the connection of the acquisition's own request.
    void answered(std::size_t node, unsigned number, const Reply&, boot_clock::time_point now,
                  bool in_order = false);
    /// No answer will come. `sent`: the request may have acted, or may act later.
    void missing(std::size_t node, unsigned number, const spi::Failure&, bool sent);
    /// May begin another request: then wants() is true for some nodes.
    virtual Phase phase(boot_clock::time_point now) = 0;
    /// Writes the outcome, which is final.
    virtual void finish(boot_clock::time_point now) = 0;
    /// useful() may become false.
    virtual bool ages() const noexcept { return false; }
    /// Decided, and its caller waits in any case: answers are worth more than time.
    virtual bool unhurried() const noexcept { return false; }
    /// Whether a request that has waited for its connection is still useful.
    virtual bool useful(std::size_t, boot_clock::time_point) const noexcept { return true; }

    const boot_clock::time_point deadline;

protected:
    Round(const RoundContext&, std::string_view name, std::shared_ptr<void> place, bool shared,
          milliseconds ttl, boot_clock::time_point deadline);
    virtual void said(std::size_t node, bool current, const Reply&, boot_clock::time_point now,
                      bool in_order) = 0;
    virtual void silent(std::size_t node, bool current, const spi::Failure&) = 0;
    /// Undoes at one node what this round did, or may still do until `again`.
    void owe(std::size_t node, boot_clock::time_point again);
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again);
    const std::string& value() const noexcept { return request_.value(); }
    bool with_units() const noexcept { return shared_ || find_state(place_)->units; }
    /// Acquires the lock there, too, unless it is being released.
    void acquire_late(std::size_t node, std::string token);

    struct Peer {
        bool wanted = false;  ///< to be asked
        bool taken = false;   ///< acquire: it may be held there, by some answer
        unsigned open = 0;    ///< requests that may still act
    };
    const RoundContext context_;
    const std::shared_ptr<void> place_;
    const bool shared_;
    const milliseconds ttl_;  ///< how long a node keeps the lock
    Keys keys_;
    Ask request_;
    unsigned number_ = 0;
    bool finished_ = false;
    boost::container::small_vector<Peer, 7> peers_;
};

/// Acquires the lock, again with a higher token while necessary. Without a majority, undoes
/// everything.
class AcquireRound final : public Round {
public:
    AcquireRound(const RoundContext&, spi::Attempt&);
    void begin(boot_clock::time_point now) override;
    Phase phase(boot_clock::time_point now) override;
    void finish(boot_clock::time_point now) override;
    bool ages() const noexcept override { return true; }
    bool unhurried() const noexcept override { return marks() && context_.told; }
    bool useful(std::size_t node, boot_clock::time_point now) const noexcept override;

private:
    void said(std::size_t, bool, const Reply&, boot_clock::time_point, bool) override;
    void silent(std::size_t, bool, const spi::Failure&) override;
    void propose(std::uint64_t token);
    void ask_again(bool busy_too);
    /// It leaves a mark where it is not granted: no later one passes.
    bool marks() const noexcept;
    milliseconds mark_lasts() const noexcept;
    /// Within which time a waiter that the nodes tell asks by itself.
    milliseconds pause() const noexcept;
    milliseconds next_look(boot_clock::time_point now) const;
    void win(boot_clock::time_point now);
    void lose(bool contended, const spi::Failure& wrong, boot_clock::time_point now);

    spi::Attempt* attempt_;
    std::uint64_t token_ = 0;
    milliseconds waited_{0};  ///< since its first attempt
    boot_clock::time_point begun_{};
    bool won_ = false;
    Tally tally_;
};

class RenewRound final : public Round {
public:
    RenewRound(const RoundContext&, spi::Held&);
    void begin(boot_clock::time_point now) override;
    Phase phase(boot_clock::time_point now) override;
    void finish(boot_clock::time_point now) override;

private:
    enum class Say : std::uint8_t {
        waiting,
        renewed,
        empty,
        gone,     ///< somebody else's
        revoked,  ///< broken, and there until its ttl has passed
        broken,   ///< broken, and no longer there
        missing
    };
    void said(std::size_t, bool, const Reply&, boot_clock::time_point, bool) override;
    void silent(std::size_t, bool, const spi::Failure&) override;
    std::size_t count(Say) const noexcept;
    std::size_t over() const noexcept;
    void repair(std::size_t node, boot_clock::time_point now);
    void give_up(boot_clock::time_point now);

    spi::Held* held_;
    std::string token_;
    bool renewed_ = false;
    boost::container::small_vector<Say, 16> said_;
    Tally votes_;  ///< what each said that did not renew it
};

/// Compare-and-delete at every node. What is unanswered there, or may still arrive, is owed.
class ReleaseRound final : public Round {
public:
    /// `engine`: driven by the thread that keeps track of arrivals (OwnerState).
    ReleaseRound(const RoundContext&, const spi::Held&, bool engine);
    /// For a grant that was never reported, on the engine.
    ReleaseRound(const RoundContext&, const spi::Attempt&);
    void begin(boot_clock::time_point now) override;
    Phase phase(boot_clock::time_point now) override;
    void finish(boot_clock::time_point now) override;
    ReleaseResult result() const noexcept { return tally_.result(peers_.size()); }
    /// Writes the result and, without a majority, what the nodes said.
    void report(spi::Held&, boot_clock::time_point now) const;

private:
    void said(std::size_t, bool, const Reply&, boot_clock::time_point, bool) override;
    void silent(std::size_t, bool, const spi::Failure&) override;

    struct UnderWay {
        boot_clock::time_point any, in_order;
    };
    const bool engine_, told_;
    boot_clock::time_point begun_{};
    std::size_t waiting_ = 0;
    Released tally_;
    Tally votes_;  ///< what each said that did not give it back
    boost::container::small_vector<UnderWay, 7> under_way_;
};

}  // namespace holdfast::redlock
