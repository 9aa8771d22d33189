// A service that runs once among all machines, as coroutines on one thread: it waits for the lock
// without a thread, ends its work when the lock is lost and competes again, and ends cleanly at INT
// and TERM.
//   coroutine_service URL
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <holdfast/holdfast.hpp>
#include <iostream>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

namespace {

// `a || b` ends when one of both has succeeded, and cancels the other. So what may fail gives its
// error as a value: an exception would be waited out.
constexpr auto as_value = asio::as_tuple(asio::use_awaitable);

// Stands for the work; it is cancelled at one of its co_awaits.
asio::awaitable<void> work() {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(100ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<void> serve(holdfast::Lock& lock, int& status) {
    asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
    for (;;) {
        auto granted = co_await (lock.async_acquire(as_value) || signals.async_wait(as_value));
        if (granted.index() == 1)
            break;  // a signal; the wait was cancelled and leaves nothing behind
        auto [error, lease] = std::move(std::get<0>(granted));
        if (error) {
            std::cerr << error.message() << '\n';
            status = 69;  // whoever supervises the service starts it again
            co_return;
        }
        std::cout << "serving, token " << lease.fencing_token().value << std::endl;
        auto ended =
            co_await (work() || lease.async_lost(as_value) || signals.async_wait(as_value));
        if (ended.index() == 2) {
            const auto answer = co_await lease.async_release(asio::use_awaitable);
            std::cout << "release: " << holdfast::to_string(answer) << std::endl;
            break;
        }
        std::cout << "lost: " << lease.lost_reason().message() << std::endl;
    }
    std::cout << "stopped" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: coroutine_service URL\n";
        return 64;
    }
    asio::io_context context;
    auto client = holdfast::Client::open(argv[1]).value();
    auto lock = client.make_lock("coroutine-service").value();
    int status = 0;
    asio::co_spawn(context, serve(*lock, status), asio::detached);
    context.run();
    return status;
}
