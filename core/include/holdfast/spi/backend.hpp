// What a backend author writes. Core does the rest once for all: collecting concurrent callers,
// waiting, deadlines, back-off, cancellation, renewal, loss, release retries, counters.
//
// Every verb is a batch of steps that do not wait for the lock: core collects the requests of
// concurrent callers for one turn of its loop and hands them over together (at most max_batch), so
// that a backend can put them into one script, one statement, one transaction.
//
// Verbs run on the engine's one thread, so a backend needs no mutexes of its own for them. Several
// calls may be under way at once, for different owners; for one owner there is at most one attempt
// or withdraw, or one renew and one release, under way. A verb writes the outcome of each item,
// never throws, and ends by itself at the latest of its items' deadlines.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/client.hpp"
#include "holdfast/examination.hpp"
#include "holdfast/export.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {

template <class T>
using awaitable = asio::awaitable<T>;

/// What an acquisition takes of its name: it is granted when the units of all live holders and its
/// own are at most `of`, and no waiter came before it.
struct Units {
    static constexpr std::uint32_t all = 0xFFFF'FFFF;
    std::uint32_t take = all, of = all;  ///< a semaphore: its permits, its limit
    Mode mode = Mode::exclusive;
    bool permits() const noexcept { return of != all; }
    /// Of a mutex, or of a shared_mutex in exclusive mode.
    bool exclusive() const noexcept { return take == all; }
    friend bool operator==(const Units&, const Units&) = default;
};

/// One acquisition from its first attempt to its end: stable address, one owner id for all its
/// attempts. The views stay valid as long as the Attempt.
struct Attempt {
    // --- in
    std::string_view name;   ///< checked UTF-8; namespace and escaping are the backend's
    std::string_view owner;  ///< unique per acquisition: makes every verb idempotent
    milliseconds ttl{};
    Units units;                  ///< default: of a mutex
    Kind kind = Kind::mutex;      ///< for layouts that differ by it; a grant goes by the units
    milliseconds lock_delay{0};   ///< the server keeps it so much longer than it says
    milliseconds min_hold{0};     ///< closed for at least so long from the grant on
    boot_clock::time_point sent;  ///< set by core just before the verb; validity counts from here
    boot_clock::time_point deadline;  ///< of this request, not of the wait; no effect at the server
                                      ///< after it, where the server can judge that
    bool queue = false;               ///< keep a place in line if busy
    bool repeated = false;            ///< not the first attempt of this owner

    // --- out
    struct Granted {
        FencingToken token;
        PreviousHolder previous = PreviousHolder::unknown;
        milliseconds ttl{};           ///< what the server really set
        boot_clock::time_point base;  ///< the grant is not older than this; default: `sent`
    };
    struct Busy {
        milliseconds look_within{};  ///< when to try without a wake-up, at the latest
        /// Nobody is granted by waiting longer than this look (poll mode): core adds its back-off.
        bool polling = false;
    };
    struct NoAnswer {
        error_code why;
    };               ///< no answer: it may have happened
    struct Failed {  ///< surely nothing was done
        Failed() : server_alive(false) {}
        Failed(error_code w) : why(w), server_alive(false) {}
        Failed(error_code w, bool alive) : why(w), server_alive(alive) {}
        error_code why;
        /// The server is there and only cannot now (loading, another's transaction): where `why`
        /// means unavailable, core asks again for as long as the caller waits, and not only for one
        /// request time-out as with a server that says nothing.
        bool server_alive;
    };
    /// Nothing is held or queued any more, since what stood for this owner at the server is gone
    /// (its session has ended): core attempts again, as after Failed with `unavailable`.
    struct PlaceLost {};
    std::variant<Failed, Granted, Busy, NoAnswer, PlaceLost> outcome;
    std::string detail;           ///< words for an error, never a secret: "refused by 10.0.0.1"
    std::shared_ptr<void> place;  ///< the backend's own: a ticket, a node path

    // --- withdraw writes this; core sets it to `unavailable` beforehand
    error_code withdrawal;  ///< no error: nothing of this owner is held or queued
};

/// One grant that core keeps. The same owner and `place` as in its Attempt.
struct Held {
    std::string_view name, owner;
    FencingToken token;
    /// What it is from here on: a renewal that finds it exclusive and is shared itself is a
    /// downgrade, in one step, with no other exclusive holder in between.
    Units units;
    milliseconds ttl{};                       ///< what a renewal asks for
    milliseconds lock_delay{0}, min_hold{0};  ///< as in its Attempt
    milliseconds granted{};  ///< what the server set last: Granted::ttl, then renewed_ttl
    std::shared_ptr<void> place;
    boot_clock::time_point deadline;  ///< of the request under way
    boot_clock::time_point sent;      ///< set by core just before renew

    // --- renew writes these
    std::optional<boot_clock::time_point> renewed_base;  ///< default: `sent`
    std::optional<milliseconds> renewed_ttl;  ///< what the server really set; default: `ttl`
    error_code renewal_error;                 ///< lost: why (errc::lost, errc::revoked, native)
    enum class Renewal : std::uint8_t { unknown, renewed, lost };
    Renewal renewal = Renewal::unknown;
    bool asked = false;  ///< somebody wants it released

    // --- release reads and writes these
    Outcome outcome = Outcome::done;
    ReleaseResult released = ReleaseResult::unreachable;
    /// Another client was notified that it is free: a blocking caller that wants it again queues
    /// at once instead of overtaking that waiter.
    bool handed_on = false;
};

/// What a backend reports to core. Any thread may call it, under no mutex of the backend's. A
/// wake-up is a hint: core attempts again and believes only the answer (which the backend may give
/// without a request where its protocol proves it). Calls for an owner that is gone are ignored.
class HOLDFAST_EXPORT BackendEvents {
public:
    virtual ~BackendEvents() = default;
    /// This attempt may succeed now.
    virtual void wake(std::string_view owner) = 0;
    /// This grant is at risk: renew now. Empty: all those whose last renewal was not answered,
    /// since the server is there again.
    virtual void at_risk(std::string_view owner) = 0;
    /// The server said that this grant is over.
    virtual void lost(std::string_view owner, error_code) = 0;
    /// Somebody wants this grant released.
    virtual void asked(std::string_view owner);
    /// Something an operator should know about the deployment; each text is reported once.
    virtual void warn(std::string text) = 0;
};

/// A blocking path for one calling thread at a time: its own connection, nothing shared with the
/// engine. Core keeps a few and lends one to each blocking call that need not wait.
class Lane {
public:
    virtual ~Lane() = default;
    /// Never queues. Anything but Granted sends core to the engine path (with the same owner) when
    /// the caller may wait, or when the outcome is in doubt.
    virtual void attempt(Attempt&) noexcept = 0;
    virtual void release(Held&) noexcept = 0;
};

enum class Verb : std::uint8_t { attempt, withdraw, renew, release };

class HOLDFAST_EXPORT Backend {
public:
    virtual ~Backend() = default;
    virtual const Capabilities& capabilities() const noexcept = 0;
    /// How many items one call of the verb may carry.
    virtual std::size_t max_batch(Verb) const noexcept { return 1; }
    /// Refuses names that the backend reserves. Any thread.
    virtual error_code check_name(std::string_view) const noexcept { return {}; }

    /// Granted, Busy (perhaps with a place in line), PlaceLost, NoAnswer or Failed, for each.
    virtual awaitable<void> attempt(std::span<Attempt* const>) = 0;
    /// Leaves the line and releases a grant that raced, so that nothing of this owner is held or
    /// queued, and no late request of it acquires the lock afterwards. Idempotent; core repeats it
    /// until `withdrawal` is no error, or the ttl has passed.
    virtual awaitable<void> withdraw(std::span<Attempt* const>) = 0;
    virtual awaitable<void> renew(std::span<Held* const>) = 0;
    /// Idempotent; core repeats it while `released` is unreachable, until the lease has run out.
    virtual awaitable<void> release(std::span<Held* const>) = 0;

    // What operators ask: at most one request time-out, until `deadline`. The arguments live until
    // the answer; `detail` receives the text for an error. A backend that leaves one out answers
    // not_supported and must not declare the capability of that name.

    /// Holders in the order of their grants, then waiters in the order of their places (their token
    /// is 0). A free name is no error: it has neither. Reading changes nothing at the server.
    virtual awaitable<result<Inspection>> inspect(std::string_view name,
                                                  boot_clock::time_point deadline,
                                                  std::string& detail);
    /// Names that are held, without the namespace, in any order; at most `limit`.
    virtual awaitable<result<std::vector<std::string>>> list(std::string_view prefix,
                                                             std::size_t limit,
                                                             boot_clock::time_point deadline,
                                                             std::string& detail);
    /// From the answer on no renewal of that grant succeeds. Errors: not_held when nobody holds it,
    /// or not with `if_token`; judged in the same step that breaks it. Broken::free_in counts from
    /// the answer, and is zero with `now`.
    virtual awaitable<result<std::vector<Broken>>> break_lock(std::string_view name,
                                                              const BreakOptions&,
                                                              boot_clock::time_point deadline,
                                                              std::string& detail);
    /// Tells holders that the lock is wanted, by BackendEvents::asked or with their next renewal.
    virtual awaitable<result<std::vector<Holder>>> request_release(std::string_view name,
                                                                   const HolderFilter&,
                                                                   boot_clock::time_point deadline,
                                                                   std::string& detail);
    /// Connects, asks what this deployment is, and says what it really promises, with a finding for
    /// each check that applies (check.hpp). Core reports what is not sound. Default:
    /// capabilities(), without connecting.
    virtual awaitable<result<Examination>> examine(boot_clock::time_point deadline,
                                                   std::string& detail);

    /// Null: this backend has no blocking path. Any thread; the lane connects on first use.
    virtual std::unique_ptr<Lane> open_lane() { return nullptr; }
    /// Ends every connection; verbs under way end with an error. Called once, on the engine thread,
    /// before the destructor.
    virtual awaitable<void> close() { co_return; }
    /// Requests sent so far, lanes included: what the server executes as one, a command, a script,
    /// a statement, a transaction of several. Default: not counted. Any thread.
    virtual std::uint64_t requests() const noexcept { return 0; }
};

/// What core gives a backend; both outlive it.
struct Context {
    asio::any_io_executor engine;
    BackendEvents& events;
};

}  // namespace holdfast::spi
