// What the reader of a documentation page has around a snippet: names that the snippets use.
#pragma once
#include <boost/asio.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <holdfast/async_lock.hpp>
#include <holdfast/async_with_lock.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <iostream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
namespace asio = boost::asio;

struct Storage {
    bool write(int row, holdfast::FencingToken token);
};
extern Storage storage;
extern int row;
int busy();
int broken();
void run_until(std::stop_token stop);
void repair();
void work();
extern holdfast::Client client;
extern holdfast::Lock* lock;
extern holdfast::Lease lease;
extern holdfast::Election election;
