// What a backend author writes. Core does the rest once for all backends: it collects concurrent
// callers, waits, keeps deadlines, backs off, cancels, renews, detects loss, repeats releases, and
// counts.
//
// Every verb is a batch of steps that do not wait for the lock. Core collects the requests of
// concurrent callers for one turn of its loop and hands them over together (at most max_batch), so
// that a backend can put them into one script, statement or transaction.
//
// Verbs run on the engine's one thread, so a backend needs no mutexes for them. Several calls may
// be under way at once, for different owners. For one owner there is at most one attempt or
// withdraw, or one renew and one release, under way. A verb writes the outcome of each item, never
// throws, and ends at the latest of its items' deadlines.
#pragma once
#include <algorithm>
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
#include "holdfast/spi/failure.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {

template <class T>
using awaitable = asio::awaitable<T>;

/// What an acquisition takes of its name. It is granted when the units of all live holders and its
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

/// One acquisition from its first attempt to its end: a stable address, and one owner id for all
/// its attempts. The views stay valid as long as the Attempt.
struct Attempt {
    // --- in
    std::string_view name;   ///< checked UTF-8; namespace and escaping are the backend's
    std::string_view owner;  ///< unique per acquisition: makes every verb idempotent
    milliseconds ttl{};
    Units units;                  ///< default: of a mutex
    Kind kind = Kind::mutex;      ///< for layouts that depend on it; units decide about a grant
    milliseconds lock_delay{0};   ///< how much longer the server keeps the name than the lease
    milliseconds min_hold{0};     ///< the name stays closed at least this long from the grant
    boot_clock::time_point sent;  ///< set by core just before the verb; validity counts from here
    boot_clock::time_point deadline;  ///< of this request, not of the wait; after it the request
                                      ///< does nothing, where the server can judge that
    bool queue = false;               ///< keep a place in the queue if busy
    bool repeated = false;            ///< not the first attempt of this owner

    // --- out
    struct Granted {
        FencingToken token;
        PreviousHolder previous = PreviousHolder::unknown;
        milliseconds ttl{};           ///< what the server set
        boot_clock::time_point base;  ///< the grant is not older than this; default: `sent`
    };
    struct Busy {
        milliseconds look_within{};  ///< attempt again after this, at the latest
        /// Poll mode: core looks again after its own back-off, at most look_within later.
        bool polling = false;

        /// The longest pause of a waiter that the server notifies, as a notification may be lost: a
        /// third of the ttl, a second at most.
        static constexpr milliseconds unnotified(milliseconds ttl) noexcept {
            return std::min(ttl / 3, milliseconds(1000));
        }
    };
    struct NoAnswer {  ///< it may have been executed
        error_code why;
        bool server_alive = false;  ///< another server takes over: as with Failed
    };
    struct Failed {  ///< surely nothing was granted or queued
        Failed() : server_alive(false) {}
        Failed(error_code w) : why(w), server_alive(false) {}
        Failed(error_code w, bool alive) : why(w), server_alive(alive) {}
        error_code why;
        /// The server is there, but cannot serve now (loading, another's transaction). If `why`
        /// means unavailable, core then attempts again for as long as the caller waits; with a
        /// silent server, only for one request time-out.
        bool server_alive;
    };
    std::variant<Failed, Granted, Busy, NoAnswer> outcome;
    std::string detail;           ///< text for an error, never a secret: "refused by 10.0.0.1"
    std::shared_ptr<void> place;  ///< the backend's own: a ticket, a node path

    // --- written by withdraw; core sets it to `unavailable` beforehand
    error_code withdrawal;  ///< no error: nothing of this owner is held or queued
};

/// One grant that core keeps, with the owner and the `place` of its Attempt.
struct Held {
    std::string_view name, owner;
    FencingToken token;
    /// The units from here on. Shared units in the renewal of an exclusive grant are a downgrade,
    /// in one step, with no other exclusive holder in between.
    Units units;
    milliseconds ttl{};                       ///< what a renewal asks for
    milliseconds lock_delay{0}, min_hold{0};  ///< as in its Attempt
    std::shared_ptr<void> place;
    boot_clock::time_point deadline;  ///< of the request under way
    boot_clock::time_point sent;      ///< set by core just before renew

    // --- renew writes these
    std::optional<boot_clock::time_point> renewed_base;  ///< default: `sent`
    std::optional<milliseconds> renewed_ttl;             ///< what the server set; default: `ttl`
    error_code renewal_error;  ///< lost: why (errc::lost, errc::revoked, native); unknown: why not
    enum class Renewal : std::uint8_t { unknown, renewed, lost };
    Renewal renewal = Renewal::unknown;
    bool asked = false;  ///< its release was requested

    // --- release reads and writes these
    Outcome outcome = Outcome::done;
    ReleaseResult released = ReleaseResult::unreachable;
    error_code release_error;  ///< unreachable: why; a refusal of the server as it said it
    /// Another client was notified that the name is free. A blocking caller that wants it again
    /// then queues at once instead of overtaking that waiter.
    bool handed_on = false;

    /// Text for an error of a renewal or a release, never a secret.
    std::string detail;
};

/// What a backend reports to core. Any thread may call it, under no mutex of the backend's. wake()
/// is a hint: core attempts again and believes only the answer (which the backend may give without
/// a request where its protocol proves it). Calls for an unknown owner are ignored.
class HOLDFAST_EXPORT BackendEvents {
public:
    virtual ~BackendEvents() = default;
    /// This attempt may succeed now.
    virtual void wake(std::string_view owner) = 0;
    /// This grant is at risk: renew now. Empty: renew all whose last renewal was not answered,
    /// since the server is back.
    virtual void at_risk(std::string_view owner) = 0;
    /// The server reported the loss of this grant.
    virtual void lost(std::string_view owner, error_code) = 0;
    /// The release of this grant was requested.
    virtual void asked(std::string_view owner);
    /// A holder of this name, which is watched, may have come or gone: see Backend::watch.
    virtual void changed(std::string_view name);
    /// Requests go to another server from now on, which may lack what the one before had. Core
    /// reports each move; at once it renews every lease, has every waiter attempt again, and asks
    /// again for every release and withdrawal that was not answered.
    virtual void moved(std::string from, std::string to);
    /// Something about the deployment that an operator should know. Each text is reported once.
    virtual void warn(std::string text) = 0;
};

/// A blocking path for one calling thread at a time: its own connection, nothing shared with the
/// engine. Core keeps a few, and lends one to each blocking call that need not wait.
class Lane {
public:
    virtual ~Lane() = default;
    /// Never queues. Core goes on over the engine, with the same owner, unless the outcome is
    /// Granted, or Busy when the caller does not wait.
    virtual void attempt(Attempt&) noexcept = 0;
    virtual void release(Held&) noexcept = 0;
};

/// What an operator says to holders.
enum class Tell : std::uint8_t {
    asked,    ///< to release: by BackendEvents::asked, or with the next renewal
    revoked,  ///< the lease is broken: no later renewal succeeds
    gone      ///< the same, and the name is free at once
};

/// What a server has of one name.
struct HOLDFAST_EXPORT Survey {
    struct Member {
        /// By holder_of(), and what the server knows beside: token, ttl_left, held_for, marks. Core
        /// sets its mode and permits.
        Holder holder;
        Units units = {};  ///< default: of a mutex
        /// Answer to Tell::revoked: until its share of the name is free.
        milliseconds free_in{0};
    };
    std::vector<Member> holders;                  ///< in the order of their grants
    std::vector<Member> waiters;                  ///< in the order of their places
    std::optional<milliseconds> closed_for = {};  ///< kept closed by lock_delay or min_hold
    FencingToken last_token{};  ///< highest granted; default: the highest of the holders
    std::vector<NodeView> nodes = {};
    /// Units of the name where nobody holds or waits: of what keeps it closed, or of its layout.
    Units units = {};

    Inspection inspection(std::string_view name) &&;
    std::vector<Broken> broken(Tell) &&;
    std::vector<Holder> asked() &&;
};

enum class Verb : std::uint8_t { attempt, withdraw, renew, release };

class HOLDFAST_EXPORT Backend {
public:
    virtual ~Backend() = default;
    virtual const Capabilities& capabilities() const noexcept = 0;
    /// How many items one call of a verb may have.
    virtual std::size_t max_batch(Verb) const noexcept { return 1; }
    /// Anything that differs by the server that a name's requests go to. Items of different servers
    /// share no call, which one server that hangs would keep from ending. Default: one server.
    virtual const void* server_of(std::string_view name) const noexcept;
    /// Refuses names that the backend reserves. Any thread.
    virtual error_code check_name(std::string_view) const noexcept { return {}; }

    /// Writes Granted, Busy (perhaps with a place in the queue), NoAnswer or Failed for each.
    virtual awaitable<void> attempt(std::span<Attempt* const>) = 0;
    /// Leaves the queue and releases a grant that raced. Afterwards nothing of this owner is held
    /// or queued, and no late request of it acquires the lock. Idempotent; core repeats it until
    /// `withdrawal` is no error or the ttl has passed.
    virtual awaitable<void> withdraw(std::span<Attempt* const>) = 0;
    virtual awaitable<void> renew(std::span<Held* const>) = 0;
    /// Idempotent; core repeats it while `released` is unreachable and the server may still keep
    /// the name closed, but once only when `release_error` says that a retry does not help.
    virtual awaitable<void> release(std::span<Held* const>) = 0;

    // Operators' calls. Each takes at most one request time-out, until `deadline`. The arguments
    // live until the answer. A backend that leaves one out answers not_supported, and must not
    // declare the capability of that name.

    /// Returns what the server has of the name. A free name is no error: it has neither holders nor
    /// waiters. Changes nothing at the server.
    virtual awaitable<Answer<Survey>> survey(std::string_view name,
                                             boot_clock::time_point deadline);
    /// Tells the holders that the filter means, and returns these alone. Whether there are any is
    /// judged in the same step that tells them. Errors: not_held (there is
    /// none), not_supported (foreign_holder()).
    virtual awaitable<Answer<Survey>> tell(std::string_view name, const HolderFilter&, Tell,
                                           boot_clock::time_point deadline);
    /// Keeps `text` beside the name for at least a day, in place of an earlier one, whether the
    /// name is held or not, and returns it. Without a text, returns the one kept, or an empty one.
    /// At most 2 kB, printable ASCII. Newer texts compare greater.
    virtual awaitable<Answer<std::string>> note(std::string_view name,
                                                std::optional<std::string> text,
                                                boot_clock::time_point deadline);
    /// Returns names that are held, without the namespace, in any order; at most `limit`.
    virtual awaitable<Answer<std::vector<std::string>>> list(std::string_view prefix,
                                                             std::size_t limit,
                                                             boot_clock::time_point deadline);
    /// Connects, examines this deployment, and returns what it really promises, with a finding for
    /// each check that applies (check.hpp). Core reports what is not sound. Default:
    /// capabilities(), without connecting.
    virtual awaitable<Answer<Examination>> examine(boot_clock::time_point deadline);

    /// Begins or ends to report by BackendEvents::changed() that a holder of the name may have come
    /// or gone since the call. After an interruption, during which changes may have been missed, it
    /// reports once more. Each name is watched once, whatever the number of its observers, and
    /// without a connection of its own. The end of a lease need not be reported when survey() has
    /// said ttl_left. Sends what it needs later; may be called after close(). A backend that leaves
    /// it out must not declare Capability::watch; observers then poll.
    virtual void watch(std::string_view name, bool on);

    // What core makes of survey() and tell(), the same for every backend.

    awaitable<Answer<Inspection>> inspect(std::string_view name, boot_clock::time_point deadline);
    /// Broken::free_in counts from the answer, and is zero with BreakOptions::now.
    awaitable<Answer<std::vector<Broken>>> break_lock(std::string_view name, const BreakOptions&,
                                                      boot_clock::time_point deadline);
    awaitable<Answer<std::vector<Holder>>> request_release(std::string_view name,
                                                           const HolderFilter&,
                                                           boot_clock::time_point deadline);

    /// Null: the backend has no blocking path. Any thread; the lane connects on first use.
    virtual std::unique_ptr<Lane> open_lane() { return nullptr; }
    /// So long may close() take to release what was asked for.
    static constexpr milliseconds closing_time{150};
    /// Ends every connection; verbs under way end with an error. Called once, where the engine
    /// runs, before the destructor.
    virtual awaitable<void> close() { co_return; }
    /// The server that requests go to now, for people: "db1:5432 (10.0.0.1), timeline 2"; where a
    /// majority decides, each that is reached. Empty: none is reached, or none is needed. Engine
    /// thread only.
    virtual std::string serving() const { return {}; }
    /// Requests sent so far, lanes included. A request is what the server executes as one: a
    /// command, a script, a statement, a transaction. Default: not counted. Any thread.
    virtual std::uint64_t requests() const noexcept { return 0; }
};

/// What core gives a backend; both outlive it.
struct Context {
    asio::any_io_executor engine;
    BackendEvents& events;
};

}  // namespace holdfast::spi
