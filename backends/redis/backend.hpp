// The Redis backend: what its two modes share. The verbs of the default mode are in fenced.cpp, its
// line of waiters in line.cpp, mode=plain in plain_backend.cpp, what operators ask in operate.cpp.
#pragma once

// A false alarm of g++ 12 about coroutine frames, whose memory Boost allocates in its own way; in
// all files that include this one.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

#include <memory>
#include <string>
#include <unordered_map>

#include "connection.hpp"
#include "protocol.hpp"
#include "subscriber.hpp"

namespace holdfast::redis {

template <class T>
using awaitable = asio::awaitable<T>;

/// What requests that are answered together can wait for: the shortest ttl, the last deadline.
struct Bounds {
    milliseconds ttl;
    boot_clock::time_point deadline;
};

class RedisBackend : public spi::Backend {
public:
    RedisBackend(const spi::Settings&, spi::Context);

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch() const noexcept override { return 32; }
    error_code check_name(std::string_view name) const noexcept override;

    awaitable<result<Inspection>> inspect(std::string_view name, boot_clock::time_point deadline,
                                          std::string& detail) override;
    awaitable<result<std::vector<std::string>>> list(std::string_view prefix, std::size_t limit,
                                                     boot_clock::time_point deadline,
                                                     std::string& detail) override;
    awaitable<result<Broken>> break_lock(std::string_view name,
                                         std::optional<FencingToken> if_token, bool now,
                                         boot_clock::time_point deadline,
                                         std::string& detail) override;
    awaitable<result<Capabilities>> probe(boot_clock::time_point deadline,
                                          std::string& detail) override;
    awaitable<void> close() override;
    std::uint64_t requests() const noexcept override {
        return shared_->requests.load(std::memory_order_relaxed);
    }

protected:
    using Answer = Connection::Answer;
    /// Runs one command, with a script also when the server has forgotten it. `why` is set when the
    /// connection could not be made or broke; an error reply is a reply.
    awaitable<Answer> run(Command& c, const Script* script, boot_clock::time_point deadline,
                          std::string* detail);
    /// One reply, or an error for its caller.
    awaitable<result<Reply>> ask(Command& c, const Script* script, boot_clock::time_point deadline,
                                 std::string* detail);

    /// min_replicas_ack: once the server has answered a write on this connection, whether enough
    /// replicas have it too. Waits a tenth of the ttl for them, at most a second, in which the
    /// connection does nothing else.
    awaitable<error_code> replicated(Bounds, std::string* detail);
    /// With min_replicas_ack: takes back what too few replicas know of. Such a grant is in doubt,
    /// such a renewal unknown.
    awaitable<void> confirm(std::span<spi::Attempt* const>);
    awaitable<void> confirm(std::span<spi::Held* const>);

    const Capabilities capabilities_;
    spi::Context context_;
    std::shared_ptr<Shared> shared_;
    std::unique_ptr<asio::ssl::context> tls_;
    std::shared_ptr<Connection> connection_;
    bool closed_ = false;
};

/// The default mode: token, line, hand-over.
class FencedBackend final : public RedisBackend {
public:
    FencedBackend(const spi::Settings&, spi::Context);

    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<error_code> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> renew(std::span<spi::Held* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;
    std::unique_ptr<spi::Lane> open_lane() override;
    std::unique_ptr<spi::AsyncLane> open_async_lane() override;
    awaitable<void> close() override;

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const noexcept {
            return std::hash<std::string_view>()(s);
        }
    };
    /// Owners that may be handed a lock, and their places as long as somebody cares.
    using Places = std::unordered_map<std::string, std::weak_ptr<void>, Hash, std::equal_to<>>;

    /// A grant that a message told, if it still holds for long enough. Sends nothing.
    bool take_handed(spi::Attempt&, boot_clock::time_point now) const;
    awaitable<void> enter(std::vector<spi::Attempt*> items);
    awaitable<bool> leave(std::vector<std::string_view> names, std::vector<std::string_view> owners,
                          std::string how, std::vector<std::int64_t> ghosts,
                          std::vector<LeaveTexts> texts, boot_clock::time_point deadline,
                          std::vector<std::string>* answers, error_code* why);
    awaitable<void> give_back(std::string name, std::string owner);
    void enrol(spi::Attempt&);
    void sweep();
    void on_message(std::string_view payload);
    void on_gap();
    bool anyone_waits() const;

    std::shared_ptr<Subscriber> subscriber_;  // null when nobody queues here
    Places places_;
    std::size_t sweep_at_ = 256;
};

/// mode=plain.
class PlainBackend final : public RedisBackend {
public:
    using RedisBackend::RedisBackend;
    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<error_code> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> renew(std::span<spi::Held* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;
    std::unique_ptr<spi::Lane> open_lane() override;
    std::unique_ptr<spi::AsyncLane> open_async_lane() override;

private:
    std::string key(std::string_view name) const {
        return shared_->options.prefix + std::string(name);
    }
    /// One lock's part in a script that takes its key, its owner, and perhaps a ttl.
    struct Call {
        std::string key;
        std::string_view owner;
        std::optional<milliseconds> ttl = {};
    };
    /// Runs the script for each of them, all sent together; by its text where it was forgotten.
    awaitable<Answer> call_each(std::vector<Call>, const Script&, boot_clock::time_point deadline);
};

}  // namespace holdfast::redis
