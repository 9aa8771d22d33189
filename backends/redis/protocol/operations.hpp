// One verb for one lock: what to ask next, what an answer means, what silence means, and the
// verdict. No sockets, no clock, no thread: the engine (backend.cpp) runs many of them together, a
// lane (lane.cpp) one at a time, and a test answers in the server's place.
#pragma once
#include <array>
#include <span>

#include "../cluster/slots.hpp"
#include "../shared.hpp"
#include "holdfast/spi/backend.hpp"
#include "keys.hpp"
#include "owner_state.hpp"
#include "scripts.hpp"

namespace holdfast::redis {

/// A request. With `many`, operations that want the same one share it: the keys of all, then the
/// arguments of all, and an array of their answers.
struct ScriptCall {
    const Script* one;  ///< null: a command, not a script
    const Script* many;
    unsigned keys;         ///< of one lock
    bool channel = false;  ///< between keys and arguments: where the server notifies of a hand-over
};

/// wants() names the request; after answered() it may want another one, after missing() it is over.
class Operation {
public:
    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    /// Null: it is over, and the outcome is written.
    const ScriptCall* wants() const noexcept { return call_; }
    void add_keys(Command&);
    /// Of a command: all of it. Texts live as long as the operation.
    virtual void add_arguments(Command&) = 0;
    /// Asked with a place in line.
    virtual bool queues() const noexcept { return false; }

    using Now = boot_clock::time_point (*)();
    /// What came back for it: a reply, or its part of one.
    virtual void answered(const Reply&, Now) = 0;
    /// No answer will come; `sent`: the request may have acted, or may still.
    virtual void missing(const spi::Failure&, bool sent) = 0;

    /// The server has written a grant or a renewal.
    virtual bool granted() const noexcept { return false; }
    /// Too few replicas have it, or the server may be the wrong one.
    virtual void unconfirmed(const spi::Failure&) {}
    /// What was granted counts from then on, if it was asked later.
    virtual void counts_from(boot_clock::time_point) noexcept {}

    /// In a cluster; otherwise all have one.
    Slot slot() const noexcept { return slot_; }
    /// Another server than that of its slot runs it, which has been told to by ASKING.
    bool asking() const noexcept { return asking_; }
    /// The next operation of this acquisition goes there, asking.
    void ask_at(spi::Endpoint) noexcept;

    const milliseconds ttl;
    const boot_clock::time_point deadline;

protected:
    /// `place`: of the acquisition; may be null.
    Operation(Shared&, const Keys&, const ScriptCall& first, milliseconds ttl,
              boot_clock::time_point deadline, OwnerState* place);
    /// The server said that the request came too late by its clock, which is known now, and that
    /// nothing was done: once more, with a deadline that is right.
    void late(std::string_view server_ms, const ScriptCall* again, Now);

    /// For people: what the server says to the last request, or the error of a part of it.
    std::string words(std::string_view error) const;

    Shared& shared_;
    const Keys& keys_;
    const ScriptCall* call_;

private:
    friend void write(Command&, std::span<Operation* const>, std::string_view channel);
    OwnerState* const asked_for_;
    const Slot slot_;
    const bool asking_;
    bool repeated_ = false;
    const Script* script_ = nullptr;  // of the last request
    std::string parts_;               // a key, where it is asked for
};

/// One request of all of these, which want the same one.
void write(Command&, std::span<Operation* const>, std::string_view channel);

/// One lock's answer to that verb as a text; of an error, what the server says.
struct ReplyText {
    std::string_view text;
    bool error = false;
};
ReplyText text_of(const Reply&, const ScriptCall&) noexcept;

class Acquire final : public Operation {
public:
    Acquire(Shared&, const Keys&, spi::Attempt&);
    void add_arguments(Command&) override;
    bool queues() const noexcept override;
    void answered(const Reply&, Now) override;
    void missing(const spi::Failure&, bool sent) override;
    bool granted() const noexcept override;
    void unconfirmed(const spi::Failure&) override;
    void counts_from(boot_clock::time_point) noexcept override;

private:
    void entered(const ReplyText&, const ScriptCall* asked, Now);
    void queued(std::string_view place, Now);
    void set(const Reply&);
    void refused(std::string_view text);
    void grant(std::uint64_t token, PreviousHolder);
    void add_units(Command&);
    /// Polls, and is ahead of those that come later.
    bool marks() const noexcept;

    spi::Attempt& attempt_;
};

class Renew final : public Operation {
public:
    Renew(Shared&, const Keys&, spi::Held&);
    void add_arguments(Command&) override;
    void answered(const Reply&, Now) override;
    void missing(const spi::Failure&, bool sent) override;
    bool granted() const noexcept override;
    void unconfirmed(const spi::Failure&) override;
    void counts_from(boot_clock::time_point) noexcept override;

private:
    spi::Held& held_;
};

/// Release and withdraw: nothing of this owner is left afterwards.
class Leave final : public Operation {
public:
    Leave(Shared&, const Keys&, const spi::Held&, boot_clock::time_point now);
    Leave(Shared&, const Keys&, const spi::Attempt&, boot_clock::time_point now);
    /// A grant that nobody here wants. `ghost`: until when, in server ms, the request for it may
    /// still arrive.
    Leave(Shared&, const Keys&, std::string_view owner, boot_clock::time_point deadline,
          std::int64_t ghost = 0);
    void add_arguments(Command&) override;
    void answered(const Reply&, Now) override;
    void missing(const spi::Failure&, bool sent) override;

    ReleaseResult result() const noexcept { return result_; }
    /// Why something of this owner may be left.
    const error_code& error() const noexcept { return failed_.why; }
    /// Writes the result of a release, and why there is none.
    void tell(spi::Held&) const;

private:
    void write_texts();
    void end(ReleaseResult);

    const std::string_view owner_;
    OwnerState* const place_;
    const FencingToken token_;
    const milliseconds lock_delay_{0};
    const boot_clock::time_point now_{};
    const std::int64_t ghost_ = 0;
    const char how_;       // r, a; u: no caller learned of a grant
    const bool find_out_;  // what else is there
    bool ended_ = false;
    ReleaseResult result_ = ReleaseResult::unreachable;
    spi::Failure failed_;
    std::array<char, 32> state_{}, till_{};
    std::size_t state_size_ = 0, till_size_ = 0;
};

}  // namespace holdfast::redis
