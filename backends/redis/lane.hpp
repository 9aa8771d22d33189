// One acquisition or release on a connection of its own: blocking, or in halves.
#pragma once
#include "blocking_link.hpp"
#include "protocol.hpp"

namespace holdfast::redis {

/// What both modes share: a verb asks once or more, each time with what the step before has left
/// in command_ and script_.
class AnyLane : public spi::Lane, public spi::AsyncLane {
public:
    explicit AnyLane(std::shared_ptr<Shared>);

    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

    bool open(boot_clock::time_point deadline) noexcept override;
    int descriptor() const noexcept override { return link_.descriptor(); }
    bool begin(spi::Attempt& a) noexcept override { return send_first(a); }
    bool begin(spi::Held& h) noexcept override { return send_first(h); }
    bool finish(spi::Attempt&) noexcept override;
    bool finish(spi::Held&) noexcept override;
    void abandon(spi::Attempt&) noexcept override;
    void abandon(spi::Held&) noexcept override;

protected:
    /// The first thing to ask.
    virtual void ask(const spi::Attempt&) = 0;
    virtual void ask(const spi::Held&) = 0;
    /// Reads the reply. False: there is one more thing to ask; not after a second one.
    virtual bool take(const Reply&, spi::Attempt&) = 0;
    virtual bool take(const Reply&, spi::Held&) = 0;
    bool first_reply() const noexcept { return round_ == 0; }

    const std::shared_ptr<Shared> shared_;
    Command command_;
    const Script* script_ = nullptr;

private:
    template <class Item>
    const Reply* exchange(const Item&, error_code& why);
    template <class Item>
    bool send_first(const Item&) noexcept;
    template <class Item>
    bool take_all(Item&, error_code& why);
    void give_up(error_code why, bool sent, spi::Attempt&) noexcept;

    BlockingLink link_;
    unsigned round_ = 0;
    bool whole_ = false;  // in halves: sent with the whole text of the script
};

/// The default mode: the scripts.
class Lane final : public AnyLane {
public:
    using AnyLane::AnyLane;

private:
    void ask(const spi::Attempt&) override;
    void ask(const spi::Held&) override;
    bool take(const Reply&, spi::Attempt&) override;
    bool take(const Reply&, spi::Held&) override;
    void use(std::string_view name);

    LeaveTexts texts_;
    std::string name_;  // whose keys these are: the same name mostly comes again
    Keys keys_;
};

/// mode=plain: the two commands of the documents.
class PlainLane final : public AnyLane {
public:
    using AnyLane::AnyLane;

private:
    void ask(const spi::Attempt&) override;
    void ask(const spi::Held&) override;
    bool take(const Reply&, spi::Attempt&) override;
    bool take(const Reply&, spi::Held&) override;
    const std::string& key(std::string_view name);

    std::string key_;
};

}  // namespace holdfast::redis
