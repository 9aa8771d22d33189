// The rules of a connection, whatever the engine: here one whose statements need no server.
#include "../common/server_connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

#include "rig.hpp"

using namespace sql_tests;
namespace sql = holdfast::sql;

namespace {

class LateConnection final : public sql::ServerConnection {
public:
    explicit LateConnection(sql::Server& server) : ServerConnection(server, Resolve::yes) {}
    ~LateConnection() override { close(); }

    bool is_open() const noexcept { return connected(); }
    /// A statement whose answer is read at the last moment: the watchdog has shut down the socket
    /// by then.
    sql::Reply run_late() {
        sql::Reply reply;
        exchange_until(boot_clock::now() + 50ms, reply, [this] {
            ++statements;
            pollfd p{guard().socket(), POLLRDHUP, 0};
            REQUIRE(::poll(&p, 1, 20'000) == 1);
        });
        return reply;
    }
    sql::Reply run() {
        sql::Reply reply;
        exchange_until(boot_clock::now() + 20s, reply, [this] { ++statements; });
        return reply;
    }
    int statements = 0;
    bool late_when_made = false;

private:
    bool connected() const noexcept override { return ends_[0] >= 0; }
    bool spoken_to() const noexcept override { return false; }
    void drop() noexcept override {
        for (int& end : ends_)
            if (end >= 0) ::close(std::exchange(end, -1));
    }
    hf::spi::Failure connect_to(const hf::spi::Endpoint&, const std::string&, sql::Server::Opening&,
                                const Limits&) override {
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) == 0);
        guard().watch(ends_[0]);
        return {};
    }
    hf::spi::Failure introduce(boot_clock::time_point) override {
        return (late_when_made ? run_late() : run()).failed;
    }

    std::array<int, 2> ends_{-1, -1};
};

/// The engine, on which the watchdog looks.
struct Engine {
    ~Engine() {
        boost::asio::post(io, [this] { server.watchdog->close(); });
        work.reset();
        thread.join();
    }
    boost::asio::io_context io;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
        io.get_executor()};
    sql::Errors errors{"test"};
    sql::Server server{errors,
                       std::make_shared<sql::Watchdog>(io.get_executor()),
                       {hf::spi::Endpoint{"127.0.0.1", 1}}};
    std::thread thread{[this] { io.run(); }};
};

}  // namespace

TEST_CASE("an answer that was read after the deadline counts, and its connection is gone") {
    Engine engine;
    LateConnection connection(engine.server);
    REQUIRE_FALSE(connection.open(boot_clock::now() + 20s));
    REQUIRE(connection.is_open());
    CHECK_FALSE(connection.run_late().failed);
    CHECK_FALSE(connection.is_open());
    const auto next = connection.run();
    CHECK(next.failed.why == engine.errors.make(sql::Error::closed));
    CHECK(next.nothing_done);
    CHECK(connection.statements == 2);
    CHECK_FALSE(connection.open(boot_clock::now() + 20s));
    CHECK_FALSE(connection.run().failed);
}

TEST_CASE(
    "a connection that is gone by the time that its server has introduced itself is not open") {
    Engine engine;
    LateConnection connection(engine.server);
    connection.late_when_made = true;
    CHECK(connection.open(boot_clock::now() + 20s).why ==
          engine.errors.make(sql::Error::no_answer));
    CHECK_FALSE(connection.is_open());
}
