// The same job in a coroutine: no thread waits while the lock is somebody else's.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <holdfast/holdfast.hpp>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> order(holdfast::Lock& lock) {
    holdfast::Lease lease = co_await lock.async_acquire({.wait = 5s}, asio::use_awaitable);
    std::cout << lease.name() << " under token " << lease.fencing_token().value << '\n';
    const auto outcome = holdfast::Outcome::done;
    const auto released = co_await lease.async_release(outcome, asio::use_awaitable);
    std::cout << "release: " << holdfast::to_string(released) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    asio::io_context context;
    auto client = holdfast::Client::open(argc > 1 ? argv[1] : "").value();
    auto lock = client.make_lock("orders/42").value();
    int status = 0;
    asio::co_spawn(context, order(*lock), [&status](const std::exception_ptr& failure) {
        if (!failure) return;
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& error) {
            std::cerr << error.what() << '\n';
            status = 1;
        }
    });
    context.run();
    return status;
}
