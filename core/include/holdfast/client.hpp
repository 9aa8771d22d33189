// Client: one configured backend, opened from a URL or from a name in holdfast.toml.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/event.hpp"
#include "holdfast/examination.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/lock.hpp"
#include "holdfast/stats.hpp"

namespace holdfast {

class Election;
class Engine;
class Registry;

struct ClientOptions {
    /// Runs completions whose handlers name no executor; must outlive the client. Default:
    /// Holdfast's own pool, which starts up to 64 threads on demand and ends idle ones.
    asio::any_io_executor executor = {};
    /// Backends to choose from; must outlive the client. Default: all that are linked in.
    const Registry* registry = nullptr;
    /// How long close() waits for releases under way: at most a day.
    milliseconds close_grace{1000};
    /// Configuration file to use instead of HOLDFAST_URL and the search path (find_config).
    std::string config_file = {};
    /// Receives the events. Default: none are reported.
    EventSink events = {};
    /// Receives all mistakes of a bad configuration at once. Used by open() only.
    Diagnostics* diagnostics = nullptr;
};

/// A cheap handle of one backend. Copies share one set of connections and one engine thread.
/// Thread-safe.
///
/// Locks and Leases keep the engine alive; after close() they answer `closed`. Destroying the last
/// of these handles closes the engine as close() does. After fork() every handle in the child
/// answers `forked`.
class HOLDFAST_EXPORT Client {
public:
    /// Refers to no backend: its functions answer `closed`.
    Client() noexcept = default;
    /// Checks the configuration. Connects on first use, or here if the configuration has `require`.
    ///
    /// `what` is a URL or the name of a backend in holdfast.toml. If empty: HOLDFAST_URL (unless
    /// `options.config_file` is given), else the file's `default`, else an error that says what to
    /// do. With `require` it blocks for at most the request time-out. Errors: bad_config,
    /// not_supported (the backend is not linked in, or a requirement is not met), and with
    /// `require` those of examine(). The details are in `options.diagnostics`.
    [[nodiscard]] static result<Client> open(std::string_view what = {},
                                             const ClientOptions& options = {});

    /// Makes a Lock, which holds nothing yet; sends nothing. A name has 1 to 512 bytes of UTF-8
    /// without NUL. Errors: bad_name, bad_config (an option out of range), not_supported (a kind or
    /// option that the backend does not have), closed, forked.
    [[nodiscard]] result<std::unique_ptr<Lock>> make_lock(std::string_view name,
                                                          const LockOptions& = {},
                                                          Diagnostics* = nullptr) const;

    /// Makes a candidate of an election (election.hpp); sends nothing. Errors: those of make_lock.
    [[nodiscard]] result<Election> make_election(std::string_view name, const LockOptions& = {},
                                                 Diagnostics* = nullptr) const;

    /// What the configuration promises; asks no server. For facts of the deployment (persistence,
    /// replicas) see probe().
    const Capabilities& capabilities() const noexcept;
    /// Connects and asks the server what it promises. Returns the capabilities of examine(), and
    /// reports its unsafe and unknown findings about the server as events (`warning`). Blocks and
    /// fails as examine().
    [[nodiscard]] result<Capabilities> probe(Diagnostics* = nullptr) const;
    /// Connects and checks what makes this deployment unsafe or slow: its servers, this
    /// configuration, this machine. Acquires no lock and changes nothing at the servers, except
    /// that SQL backends create their own table when it is missing. Blocks for at most the request
    /// time-out. Errors: unavailable, no_quorum, denied, not_supported (not a server for this
    /// backend), closed, forked.
    [[nodiscard]] result<Examination> examine(Diagnostics* = nullptr) const;

    /// Returns the holders of the name and its waiters. A free name is no error. Blocks for at most
    /// the request time-out. Errors: bad_name, not_supported, kind_mismatch, unavailable,
    /// no_quorum, denied, closed, forked.
    [[nodiscard]] result<Inspection> inspect(std::string_view name, Diagnostics* = nullptr) const;
    /// Returns the names that are held now and begin with `prefix`: at most `limit` of them,
    /// sorted. Blocks for at most the request time-out. Errors: not_supported, unavailable,
    /// no_quorum, denied, closed, forked.
    [[nodiscard]] result<std::vector<std::string>> list(std::string_view prefix = {},
                                                        std::size_t limit = 10000,
                                                        Diagnostics* = nullptr) const;
    /// Breaks leases: no renewal of them succeeds any more, and their holders report the loss. The
    /// name is free when the last validity has ended, or at once with BreakOptions::now. Returns
    /// one entry per holder. Then records for a day who did it; without permission to do so, or
    /// without an answer, the event `warning` says that. Blocks for at most the request time-out.
    /// Errors: bad_name, bad_config (an empty owner), not_held (no such holder), not_supported,
    /// kind_mismatch, unavailable, no_quorum, denied, closed, forked.
    [[nodiscard]] result<std::vector<Broken>> break_lock(std::string_view name,
                                                         const BreakOptions& = {},
                                                         Diagnostics* = nullptr) const;

    /// Asks holders to release, and forces nothing; see Lease::release_requested. Returns the
    /// holders asked, including those asked before. Blocks and fails as break_lock().
    [[nodiscard]] result<std::vector<Holder>> request_release(std::string_view name,
                                                              const HolderFilter& = {},
                                                              Diagnostics* = nullptr) const;

    // The same without blocking. Completion: on the handler's executor, else the client's, never
    // inside this call; at the request time-out at the latest. Not cancellable. Close the client
    // only after it. Lifetime: this object may be destroyed at once, even before a lazy token
    // begins the call; `diagnostics` outlives it. In a forked child the handler never runs.

    template <class T>
    using Signature = void(error_code, T);

    template <asio::completion_token_for<Signature<Examination>> Token = asio::deferred_t>
    [[nodiscard]] auto async_examine(Diagnostics* diagnostics = nullptr,
                                     Token&& token = Token()) const {
        return begin<Examination>(
            [diagnostics](const Client& c, auto h) { c.start_examine(diagnostics, std::move(h)); },
            token);
    }
    template <asio::completion_token_for<Signature<Examination>> Token>
    [[nodiscard]] auto async_examine(Token&& token) const {
        return async_examine(nullptr, std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<Inspection>> Token = asio::deferred_t>
    [[nodiscard]] auto async_inspect(std::string name, Diagnostics* diagnostics = nullptr,
                                     Token&& token = Token()) const {
        return begin<Inspection>(
            [name = std::move(name), diagnostics](const Client& c, auto h) {
                c.start_inspect(name, diagnostics, std::move(h));
            },
            token);
    }
    template <asio::completion_token_for<Signature<Inspection>> Token>
    [[nodiscard]] auto async_inspect(std::string name, Token&& token) const {
        return async_inspect(std::move(name), nullptr, std::forward<Token>(token));
    }
    template <
        asio::completion_token_for<Signature<std::vector<std::string>>> Token = asio::deferred_t>
    [[nodiscard]] auto async_list(std::string prefix = {}, std::size_t limit = 10000,
                                  Diagnostics* diagnostics = nullptr,
                                  Token&& token = Token()) const {
        return begin<std::vector<std::string>>(
            [prefix = std::move(prefix), limit, diagnostics](const Client& c, auto h) {
                c.start_list(prefix, limit, diagnostics, std::move(h));
            },
            token);
    }
    template <asio::completion_token_for<Signature<std::vector<std::string>>> Token>
    [[nodiscard]] auto async_list(std::string prefix, std::size_t limit, Token&& token) const {
        return async_list(std::move(prefix), limit, nullptr, std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<std::vector<std::string>>> Token>
    [[nodiscard]] auto async_list(std::string prefix, Token&& token) const {
        return async_list(std::move(prefix), 10000, std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<std::vector<std::string>>> Token>
    [[nodiscard]] auto async_list(Token&& token) const {
        return async_list(std::string(), std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<std::vector<Broken>>> Token = asio::deferred_t>
    [[nodiscard]] auto async_break_lock(std::string name, BreakOptions options = {},
                                        Diagnostics* diagnostics = nullptr,
                                        Token&& token = Token()) const {
        return begin<std::vector<Broken>>(
            [name = std::move(name), options = std::move(options), diagnostics](const Client& c,
                                                                                auto h) {
                c.start_break(name, options, diagnostics, std::move(h));
            },
            token);
    }
    template <asio::completion_token_for<Signature<std::vector<Broken>>> Token>
    [[nodiscard]] auto async_break_lock(std::string name, BreakOptions options,
                                        Token&& token) const {
        return async_break_lock(std::move(name), std::move(options), nullptr,
                                std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<std::vector<Broken>>> Token>
    [[nodiscard]] auto async_break_lock(std::string name, Token&& token) const {
        return async_break_lock(std::move(name), BreakOptions(), std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<std::vector<Holder>>> Token = asio::deferred_t>
    [[nodiscard]] auto async_request_release(std::string name, HolderFilter which = {},
                                             Diagnostics* diagnostics = nullptr,
                                             Token&& token = Token()) const {
        return begin<std::vector<Holder>>(
            [name = std::move(name), which = std::move(which), diagnostics](const Client& c,
                                                                            auto h) {
                c.start_request(name, which, diagnostics, std::move(h));
            },
            token);
    }
    template <asio::completion_token_for<Signature<std::vector<Holder>>> Token>
    [[nodiscard]] auto async_request_release(std::string name, HolderFilter which,
                                             Token&& token) const {
        return async_request_release(std::move(name), std::move(which), nullptr,
                                     std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature<std::vector<Holder>>> Token>
    [[nodiscard]] auto async_request_release(std::string name, Token&& token) const {
        return async_request_release(std::move(name), HolderFilter(), std::forward<Token>(token));
    }

    /// What this client has done so far. Does not block.
    Stats stats() const;
    /// What it was opened with, without user, password and options: "redis://cache1:6379".
    std::string url() const;
    /// The backend's name: "redis", "sqlite", ...
    std::string_view backend() const noexcept;

    /// Ends every wait with `closed`, and loses and releases every lease (as abandoned).
    /// Idempotent.
    ///
    /// Blocks for at most close_grace for the servers' answers, as long again for handlers of yours
    /// in the pool, and 1.2 s more if overloaded. An acquisition of another thread that is granted
    /// meanwhile is released and answers `closed`. An unanswered request is in doubt at its
    /// time-out, and released only then: a close_grace below request_timeout leaves that to the
    /// ttl, as does a broken connection.
    void close() noexcept;

    struct Impl;
    explicit Client(std::shared_ptr<Impl> i) noexcept : impl_(std::move(i)) {}

private:
    friend class Election;
    template <class T>
    using Handler = asio::any_completion_handler<Signature<T>>;
    template <class T, class Start, class Token>
    auto begin(Start start, Token& token) const {
        return asio::async_initiate<Token, Signature<T>>(
            [client = *this, start = std::move(start)](auto h) mutable {
                // Not kept for the call: the client closes with its last handle.
                const Client mine = std::move(client);
                start(mine, std::move(h));
            },
            token);
    }
    void start_examine(Diagnostics*, Handler<Examination>) const;
    void start_inspect(const std::string&, Diagnostics*, Handler<Inspection>) const;
    void start_list(const std::string& prefix, std::size_t limit, Diagnostics*,
                    Handler<std::vector<std::string>>) const;
    void start_break(const std::string&, const BreakOptions&, Diagnostics*,
                     Handler<std::vector<Broken>>) const;
    void start_request(const std::string&, const HolderFilter&, Diagnostics*,
                       Handler<std::vector<Holder>>) const;
    /// Null: there is none.
    Engine* engine() const noexcept;

    std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast
