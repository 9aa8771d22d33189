// One client of a backend of Redis or of Redlock without core's engine: each verb is run to its end
// on the calling thread, so that a test can put several clients, and several locks, into any order.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/redis_server.hpp"
#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/owner.hpp"

namespace redis_tests {

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::milliseconds;
using holdfast::PreviousHolder;
using holdfast::lab::RedisServer;
namespace spi = holdfast::spi;

struct FakeSink final : spi::BackendEvents {
    void wake(std::string_view owner) override { woken.emplace_back(owner); }
    void at_risk(std::string_view) override {}
    void lost(std::string_view, holdfast::error_code) override {}
    void warn(std::string text) override { warnings.push_back(std::move(text)); }
    std::vector<std::string> woken, warnings;
};

/// One acquisition, with everything that it owns.
struct Try {
    explicit Try(std::string lock, milliseconds ttl = 10s, bool queue = false);
    Try(const Try&) = delete;
    Try& operator=(const Try&) = delete;
    std::string name, owner;
    spi::Attempt a;

    bool granted() const { return std::holds_alternative<spi::Attempt::Granted>(a.outcome); }
    bool busy() const { return std::holds_alternative<spi::Attempt::Busy>(a.outcome); }
    bool in_doubt() const { return std::holds_alternative<spi::Attempt::NoAnswer>(a.outcome); }
    const spi::Attempt::Granted& grant() const {
        return std::get<spi::Attempt::Granted>(a.outcome);
    }
    std::uint64_t token() const { return grant().token.value; }
    holdfast::error_code error() const;
    spi::Held held(holdfast::Outcome how = holdfast::Outcome::done) const;
};

/// One verb of a lane.
Try& attempt(spi::Lane&, Try&, milliseconds request_time = 2s);
holdfast::ReleaseResult release(spi::Lane&, const Try&,
                                holdfast::Outcome how = holdfast::Outcome::done);

class Rig {
public:
    /// `query`: "mode=plain", ...
    explicit Rig(const std::string& url, const std::string& query = {});
    ~Rig();

    Try& attempt(Try&, milliseconds request_time = 2s);
    void attempt(const std::vector<Try*>&, milliseconds request_time = 2s);
    holdfast::error_code withdraw(Try&, milliseconds request_time = 2s);
    spi::Held renew(const Try&, milliseconds request_time = 2s);
    holdfast::ReleaseResult release(const Try&, holdfast::Outcome = holdfast::Outcome::done);
    /// All at once; how many were answered `released`.
    int release(const std::vector<Try*>&);

    holdfast::result<holdfast::Inspection> inspect(const std::string& name);
    holdfast::result<std::vector<std::string>> list(const std::string& prefix,
                                                    std::size_t limit = 1000);
    holdfast::result<holdfast::Broken> break_lock(const std::string& name, bool now = false,
                                                  std::optional<holdfast::FencingToken> token = {});
    holdfast::result<holdfast::Capabilities> probe();

    /// Lets the engine run until it is so.
    void until(const std::function<bool()>& so, const char* what);
    bool woken(const Try&);

    template <class T>
    T run(spi::awaitable<T> verb) {
        std::optional<T> out;
        std::exception_ptr thrown;
        boost::asio::co_spawn(io, std::move(verb), [&](std::exception_ptr e, T value) {
            thrown = e;
            out.emplace(std::move(value));
        });
        until([&] { return out.has_value(); }, "the verb ends");
        if (thrown) std::rethrow_exception(thrown);
        return std::move(*out);
    }
    void run(spi::awaitable<void> verb);

    boost::asio::io_context io;
    FakeSink events;
    std::unique_ptr<spi::Backend> backend;
    /// Of the last operator's call.
    std::string detail;

private:
    template <class T>
    holdfast::result<T> told(holdfast::spi::Answer<T> answer) {
        detail = answer ? std::string() : answer.error().detail;
        if (!answer) return answer.error().why;
        return std::move(*answer);
    }
};

}  // namespace redis_tests
