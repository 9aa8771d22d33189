// Operators' calls (probe, inspect, list, break): run on the engine while the caller waits.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "engine.hpp"
#include "explain.hpp"
#include "one_shot.hpp"

namespace holdfast {

template <class T>
using OperatorAnswer = OneShot<spi::Answer<T>>;

template <class T, class Verb>
spi::awaitable<void> run_operator_verb(std::shared_ptr<Engine> engine, Verb verb,
                                       boot_clock::time_point deadline,
                                       std::shared_ptr<OperatorAnswer<T>> answer) {
    try {
        auto asking = verb(engine->backend(), deadline);
        answer->set(co_await std::move(asking));
    } catch (const std::exception& e) {
        answer->set(spi::Failure(errc::unavailable, e.what()));
    }
}

/// Blocks for at most one request time-out, and a second more on an overloaded machine.
template <class T, class Verb>
result<T> operator_call(Engine& engine, Verb verb, Diagnostics* diagnostics) {
    if (engine.forked()) return make_error_code(errc::forked);
    if (engine.closed()) return make_error_code(errc::closed);
    if (engine.on_engine_thread()) return make_error_code(errc::would_deadlock);
    auto answer = std::make_shared<OperatorAnswer<T>>();
    const auto deadline = boot_clock::now() + engine.timing.request(engine.timing.ttl);
    auto run =
        run_operator_verb<T, Verb>(engine.shared_from_this(), std::move(verb), deadline, answer);
    asio::co_spawn(engine.executor(), std::move(run), asio::detached);
    auto got = answer->take_until(deadline + std::chrono::seconds(1));
    if (got && *got) return std::move(**got);
    const spi::Failure failed = got ? std::move(*got).error() : spi::Failure(errc::unavailable);
    if (diagnostics != nullptr) explain(*diagnostics, engine.resolved, failed.why, failed.detail);
    return failed.why;
}

}  // namespace holdfast
