// Runs a coroutine to its end on a loop of its own.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <utility>

namespace test_support {

/// Returns its result, or throws its exception.
template <class T>
T run(boost::asio::awaitable<T> work) {
    boost::asio::io_context loop;
    auto result = boost::asio::co_spawn(loop, std::move(work), boost::asio::use_future);
    loop.run();
    return result.get();
}

}  // namespace test_support
