// The Redis backend on the engine: runs operations (protocol/operations.hpp) over one connection,
// as many together as possible. Operators' calls are in operate.cpp, the queue of waiters in
// line.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "../resp/subscriber.hpp"
#include "../resp/waiters.hpp"
#include "connection.hpp"
#include "protocol/in_flight.hpp"
#include "protocol/operations.hpp"
#include "sentinel/sentinels.hpp"

namespace holdfast::redis {

template <class T>
using awaitable = asio::awaitable<T>;

/// Of a server in a cluster: where it is, and what hears of its redirections.
class Member : public Where {
public:
    /// What finds its host; before the first find().
    virtual void leads_to(std::shared_ptr<Where>) = 0;
    /// MOVED.
    virtual void moved(const Redirect&) = 0;
    /// CLUSTERDOWN.
    virtual void uncovered() = 0;
    /// As far as is known.
    virtual bool has(Slot) const = 0;
    /// With the server's own host where it is empty.
    virtual spi::Endpoint whole(spi::Endpoint) const = 0;
};

/// For all connections of a client; null: no TLS. Errors: as those of tls::Context.
std::shared_ptr<tls::Context> tls_context(const spi::Settings&, spi::BackendEvents&);

/// mode=plain, and the default mode with wait=poll.
class RedisBackend : public spi::Backend {
public:
    /// `member`: the server is one of a cluster; else null.
    RedisBackend(const spi::Settings&, spi::Context, std::shared_ptr<tls::Context>,
                 std::shared_ptr<Member> member);

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 32; }
    error_code check_name(std::string_view name) const noexcept override;

    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> renew(std::span<spi::Held* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;

    awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                               boot_clock::time_point deadline) override;
    awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter&, spi::Tell,
                                             boot_clock::time_point deadline) override;
    awaitable<spi::Answer<std::string>> note(std::string_view name, std::optional<std::string> text,
                                             boot_clock::time_point deadline) override;
    awaitable<spi::Answer<std::vector<std::string>>> list(std::string_view prefix,
                                                          std::size_t limit,
                                                          boot_clock::time_point deadline) override;
    awaitable<spi::Answer<Examination>> examine(boot_clock::time_point deadline) override;
    std::unique_ptr<spi::Lane> open_lane() override;
    awaitable<void> close() override;
    std::string serving() const override { return shared_->serving(); }
    std::uint64_t requests() const noexcept override {
        return shared_->requests.load(std::memory_order_relaxed);
    }

    /// One reply, or its error for the caller.
    awaitable<spi::Answer<Reply>> ask(const Command& c, const Script* script,
                                      boot_clock::time_point deadline);
    /// A reply to each of these, which are sent together; an error reply is a reply.
    awaitable<spi::Answer<std::vector<Reply>>> ask(std::vector<Command> all,
                                                   boot_clock::time_point deadline);
    /// It is no primary any more: closes all connections, so that what it still says counts no
    /// more. The next request connects anew.
    virtual void leave();
    const ClockOffset& clock() const noexcept { return shared_->clock; }
    unsigned moves() const noexcept { return shared_->moves(); }

protected:
    using Answer = Connection::Answer;
    using Operations = std::vector<Operation*>;
    /// A command, and the operations that it is for: none for one that goes before another.
    struct Request {
        Command command;
        const Script* script = nullptr;
        std::span<Operation* const> of;
    };
    /// Runs all operations to their ends.
    awaitable<void> drive(Operations);
    /// Sends one request for all of these that may share it, or one for each, together. Those that
    /// may are adjacent. Returns a reply, or part of one, for each. With `link`, by that connection
    /// only.
    awaitable<Answer> exchange(std::span<Operation* const>, std::uint64_t link);
    /// For operations that want the same.
    std::vector<Request> requests_of(std::span<Operation* const>, bool share) const;
    /// A reply, or part of one, for each operation, in their order. Adds to `refused` those of a
    /// request that may be answered to some of them alone.
    std::vector<Reply> parts_of(std::span<const Request>, std::vector<Reply>,
                                std::vector<Operation*>& refused) const;
    /// Runs these, sent together, on the connection that is ready; one reply for each. Sends a
    /// script again when the server has forgotten it. `failed` is set when the connection broke; an
    /// error reply is a reply.
    awaitable<Answer> run(std::span<Request>, boot_clock::time_point deadline,
                          std::uint64_t link = 0);
    /// The same on one that is made if need be; what failed is judged.
    awaitable<Answer> send(std::span<Request>, boot_clock::time_point deadline);
    /// Whether this server, which may have changed since the connection was made, is one whose data
    /// is the truth: a replica's may be older.
    awaitable<spi::Failure> still_usable(boot_clock::time_point deadline);
    /// The keys of a name that no lock has, in a slot of this server. False: it has no slots now.
    bool assign_unused(Keys&) const;
    /// What these keys have, in their order.
    awaitable<spi::Answer<std::vector<Reply>>> values_of(const std::vector<std::string>& locks,
                                                         boot_clock::time_point deadline);
    /// min_replicas_ack: once the server has answered writes on connection `link`, takes back those
    /// that too few replicas have. WAIT covers only writes of its own connection. It waits a tenth
    /// of the ttl, at most a second, during which the connection does nothing else.
    awaitable<void> confirm(const Operations& granted, std::uint64_t link);

    /// Reconnects if the error says that the server is a replica: the address may lead to the
    /// primary by now.
    void notice(const error_code&);
    /// The same for an error reply; follows what a cluster says in it. `to`: what it answers.
    void notice(std::string_view reply, Operation* to);
    virtual void demoted() {}  ///< the same for other connections
    /// Sentinels: what was granted counts from the moment since which this server is confirmed, or
    /// not at all. `move`: when it was asked.
    awaitable<void> count(const Operations& granted, unsigned move);
    /// The primary is another server: nothing that the former one says counts any more.
    void moved(const std::string& from, const std::string& to);
    virtual void elsewhere() {}  ///< the same for other connections
    /// The channel on which waiters are notified of a hand-off.
    virtual std::string_view channel() const noexcept { return {}; }

    const Capabilities capabilities_;
    spi::Context context_;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
    const std::shared_ptr<tls::Context> tls_;  ///< null: no TLS
    std::shared_ptr<Connection> connection_;
    std::shared_ptr<Sentinels> sentinels_;  ///< null: the URL has the server
    std::shared_ptr<Member> member_;        ///< null: no cluster

private:
    /// Withdraws wherever an abandoned request may still bring a grant.
    awaitable<void> take_back(std::vector<InFlight::Open>);
    awaitable<spi::Failure> replicated(const Operations&, std::uint64_t link);
};

/// wait=queue: a queue of waiters, and grants by message.
class QueueBackend final : public RedisBackend {
public:
    QueueBackend(const spi::Settings&, spi::Context, std::shared_ptr<tls::Context>,
                 std::shared_ptr<Member>);

    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;
    awaitable<void> close() override;

private:
    void demoted() override { subscriber_->reconnect(); }
    void leave() override;
    void elsewhere() override { subscriber_->leave(); }
    std::string_view channel() const noexcept override { return subscriber_->channel(); }
    awaitable<void> give_back(std::string name, std::string owner);
    void on_message(std::string_view payload);
    void on_gap();
    bool anyone_waits() const;

    std::shared_ptr<Subscriber> subscriber_;
    Waiters waiters_;  ///< owners that may be handed a lock
};

/// The one that the settings ask for.
std::unique_ptr<RedisBackend> make_server(const spi::Settings&, spi::Context,
                                          std::shared_ptr<tls::Context>,
                                          std::shared_ptr<Member> member = nullptr);

}  // namespace holdfast::redis
