// Client: one configured backend, opened from a URL, or from a name in holdfast.toml.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/event.hpp"
#include "holdfast/examination.hpp"
#include "holdfast/lock.hpp"
#include "holdfast/stats.hpp"

namespace holdfast {

namespace spi {
class Registry;
}

struct ClientOptions {
    /// Where completions without an executor of their own run; must outlive the client. Default: a
    /// small pool of Holdfast's, whose threads end when idle.
    asio::any_io_executor executor = {};
    /// Default: every backend that is linked in.
    const spi::Registry* registry = nullptr;
    /// How long close() waits for releases under way.
    milliseconds close_grace{1000};
    /// Configuration file to use instead of the search path.
    std::string config_file = {};
    /// Where events go. Default: nowhere.
    EventSink events = {};
    /// Filled with all mistakes of a bad configuration at once; used by open() only.
    Diagnostics* diagnostics = nullptr;
};

/// One holder, or one waiter in its place in line.
struct Holder {
    std::string owner;                          ///< owner id as the server has it
    std::string host;                           ///< empty when a foreign client holds it
    long pid = 0;                               ///< 0 when unknown
    std::string note;                           ///< AcquireOptions::note
    FencingToken token{};                       ///< 0 for waiters and foreign holders
    std::optional<milliseconds> ttl_left = {};  ///< none: never expires, or a waiter
    std::optional<milliseconds> held_for = {};  ///< none: unknown
    bool foreign = false;                       ///< not one of Holdfast's
    bool revoked = false;                       ///< broken, and free when ttl_left has passed
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    bool asked = false;  ///< to release it
};

/// What one server says by itself, where a lock is kept by a majority of several.
struct NodeView {
    std::string node;                           ///< "127.0.0.1:7001"
    std::string owner;                          ///< owner id there; empty: free, or no answer
    std::optional<milliseconds> ttl_left = {};  ///< none: free, or never expires
    error_code error;                           ///< no answer, and why
};

struct Inspection {
    std::string name;
    Kind kind = Kind::mutex;                      ///< of the holders and waiters
    std::uint32_t limit = 1;                      ///< of a semaphore
    std::optional<milliseconds> closed_for = {};  ///< by nobody: lock_delay, min_hold
    std::vector<Holder> holders, waiters;
    std::vector<NodeView> nodes;  ///< empty where one server, or one ensemble, speaks for all
    FencingToken last_token{};    ///< highest token ever given, as far as the server remembers
};

struct BreakOptions {
    /// Only the grant with this token. Default: any grant of the name.
    std::optional<FencingToken> if_token = {};
    /// Free at once. Two holders are possible until the last validity given has run out.
    bool now = false;
    /// Only the grant of this owner. Default: all holders. Copied when the call starts.
    std::string_view owner = {};
};

/// Of which holders something is asked. Default: all of the name.
struct HolderFilter {
    std::optional<FencingToken> if_token = {};
    std::string_view owner = {};
};

/// One holder that lost the name, and when its part of it is free.
struct Broken {
    Holder holder;
    milliseconds free_in{0};
};

/// A cheap handle; copies share one set of connections and one engine thread. Thread-safe.
///
/// Locks and Leases keep the engine alive; after close() they answer `closed`. The destructor of
/// the last handle does what close() does. After fork() every handle in the child answers `forked`.
class HOLDFAST_EXPORT Client {
public:
    /// Checks the configuration; connects on first use, or here when it has `require`.
    ///
    /// `what` is a URL, or the name of a backend in holdfast.toml. Empty: HOLDFAST_URL (unless
    /// `options.config_file` is given), else the file's `default`, else an error that says what to
    /// do. Errors: bad_config, not_supported (a requirement is not met), and with `require`
    /// unavailable and denied. The words are in `options.diagnostics`.
    [[nodiscard]] static result<Client> open(std::string_view what = {},
                                             const ClientOptions& options = {});

    /// Makes the lock object, which holds nothing yet; sends nothing. Errors: bad_name, bad_config
    /// (an option out of range), not_supported (a kind or an option that the backend does not
    /// have), closed, forked.
    [[nodiscard]] result<std::unique_ptr<Lock>> make_lock(std::string_view name,
                                                          const LockOptions& = {},
                                                          Diagnostics* = nullptr) const;

    /// As configured; a deployment's own facts (persistence, replicas) are in probe().
    const Capabilities& capabilities() const noexcept;
    /// Connects and asks the server what it promises: the capabilities of examine(), whose unsafe
    /// and unknown findings about the server it reports as events (`warning`). Blocks and fails as
    /// examine() does.
    [[nodiscard]] result<Capabilities> probe(Diagnostics* = nullptr) const;
    /// Connects and checks what makes this deployment unsafe or slow: its servers, this
    /// configuration, this machine. Takes no lock and changes nothing at the servers but, with
    /// SQL, its own table when that is missing. Errors: unavailable, denied, not_supported (not a
    /// server for this backend), closed, forked. Blocks for at most the request time-out.
    [[nodiscard]] result<Examination> examine(Diagnostics* = nullptr) const;

    /// The holder of the name, and its waiters. Blocks for at most the request time-out.
    [[nodiscard]] result<Inspection> inspect(std::string_view name, Diagnostics* = nullptr) const;
    /// Names that are held now and begin with `prefix`, sorted, at most `limit`.
    [[nodiscard]] result<std::vector<std::string>> list(std::string_view prefix = {},
                                                        std::size_t limit = 10000,
                                                        Diagnostics* = nullptr) const;
    /// Revokes the lease: no renewal of it succeeds any more, and its holder reports the loss. The
    /// name is free when the last validity given has run out, or at once (BreakOptions::now). One
    /// entry per holder. Errors: not_held (nobody holds it, or not with that token), not_supported,
    /// kind_mismatch, unavailable, denied. Blocks for at most the request time-out.
    [[nodiscard]] result<std::vector<Broken>> break_lock(std::string_view name,
                                                         const BreakOptions& = {},
                                                         Diagnostics* = nullptr) const;

    /// Asks holders to release: see Lease::release_requested. Nothing is forced. The holders that
    /// were asked, also those that had been before. Errors: not_held, not_supported, kind_mismatch,
    /// unavailable, denied. Blocks for at most the request time-out.
    [[nodiscard]] result<std::vector<Holder>> request_release(std::string_view name,
                                                              const HolderFilter& = {},
                                                              Diagnostics* = nullptr) const;

    Stats stats() const;
    /// What it was opened with, secrets left out: "redis://cache1:6379".
    std::string url() const;
    /// "redis", "sqlite", ...
    std::string_view backend() const noexcept;

    /// Gives up every lease (as abandoned) and every wait; blocks at most close_grace for answers,
    /// as long again for handlers of yours in the pool, and 1.2 s if overloaded. Idempotent. An
    /// acquisition of another thread that is granted meanwhile is released and answers `closed`.
    /// A request that is not answered is in doubt at its time-out, and released then: a
    /// close_grace below request_timeout leaves that to the ttl, as does a connection that is cut.
    void close() noexcept;

    struct Impl;
    explicit Client(std::shared_ptr<Impl> i) noexcept : impl_(std::move(i)) {}

private:
    std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast
