// Operators' calls (probe, inspect, list, break): run on the engine while the caller waits, or
// until its handler is completed.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <utility>

#include "complete_on_system.hpp"
#include "engine.hpp"
#include "explain.hpp"
#include "one_shot.hpp"

namespace holdfast {

/// What is asked of the backend, on the engine thread, until the deadline.
template <class T>
using OperatorVerb =
    std::function<spi::awaitable<spi::Answer<T>>(Engine&, boot_clock::time_point deadline)>;

/// Takes one answer for the sink: `closed` where an engine that has ended has dropped the call.
template <class T, class Sink>
class AnswerOnce {
public:
    AnswerOnce(std::shared_ptr<Engine> e, std::shared_ptr<Sink> s)
        : engine_(std::move(e)), sink_(std::move(s)) {}
    AnswerOnce(const AnswerOnce&) = delete;
    AnswerOnce& operator=(const AnswerOnce&) = delete;
    ~AnswerOnce() {
        if (sink_ && !engine_->forked()) set(spi::Failure(errc::closed));
    }
    void set(spi::Answer<T> answer) {
        if (const auto sink = std::exchange(sink_, nullptr)) sink->set(std::move(answer));
    }

private:
    const std::shared_ptr<Engine> engine_;
    std::shared_ptr<Sink> sink_;  ///< null: it was answered
};

template <class T, class Sink>
spi::awaitable<void> run_operator_verb(std::shared_ptr<Engine> engine, OperatorVerb<T> verb,
                                       boot_clock::time_point deadline,
                                       std::shared_ptr<AnswerOnce<T, Sink>> answer) {
    const Engine::Running running(std::move(engine));
    try {
        auto asking = verb(*running.engine, deadline);
        answer->set(co_await std::move(asking));
    } catch (const std::exception& e) {
        answer->set(spi::Failure(errc::unavailable, e.what()));
    }
}

template <class T, class Sink>
boot_clock::time_point begin_operator_call(Engine& engine, OperatorVerb<T> verb,
                                           std::shared_ptr<Sink> sink) {
    const auto deadline = boot_clock::now() + engine.timing.request(engine.timing.ttl);
    const auto alive = engine.shared_from_this();
    auto run =
        run_operator_verb<T, Sink>(alive, std::move(verb), deadline,
                                   std::make_shared<AnswerOnce<T, Sink>>(alive, std::move(sink)));
    asio::co_spawn(engine.executor(), std::move(run), asio::detached);
    return deadline;
}

/// Why a call that blocks cannot begin. `engine`: null without a client. `verb`: or why it is not
/// asked.
template <class T>
error_code refused(Engine* engine, const result<OperatorVerb<T>>& verb) {
    if (engine == nullptr) return make_error_code(errc::closed);
    if (engine->forked()) return make_error_code(errc::forked);
    if (!verb) return verb.error();
    if (engine->closed()) return make_error_code(errc::closed);
    if (engine->on_engine_thread()) return make_error_code(errc::would_deadlock);
    return {};
}

/// Blocks for at most one request time-out, and a second more on an overloaded machine.
template <class T>
result<T> operator_call(Engine* engine, result<OperatorVerb<T>> verb, Diagnostics* diagnostics) {
    if (const auto ec = refused(engine, verb)) return ec;
    auto answer = std::make_shared<OneShot<spi::Answer<T>>>();
    const auto deadline = begin_operator_call<T>(*engine, std::move(*verb), answer);
    auto got = answer->take_until(deadline + std::chrono::seconds(1));
    if (got && *got) return std::move(**got);
    const spi::Failure failed = got ? std::move(*got).error() : spi::Failure(errc::unavailable);
    if (diagnostics != nullptr) explain(*diagnostics, engine->resolved, failed.why, failed.detail);
    return failed.why;
}

/// Completes the handler of one operator's call, once.
template <class T>
class OperatorHandler {
public:
    using Signature = void(error_code, T);
    OperatorHandler(std::shared_ptr<Engine> e, asio::any_completion_handler<Signature> h,
                    Diagnostics* d)
        : engine_(std::move(e)),
          callback_(std::move(h), engine_->default_executor()),
          diagnostics_(d) {}
    void set(spi::Answer<T> answer) {
        if (answer) return engine_->complete(callback_, error_code(), std::move(*answer));
        const spi::Failure failed = std::move(answer).error();
        callback_.while_alive([&] {
            if (diagnostics_ != nullptr)
                explain(*diagnostics_, engine_->resolved, failed.why, failed.detail);
        });
        engine_->complete(callback_, failed.why, T());
    }

private:
    const std::shared_ptr<Engine> engine_;
    Callback<Signature> callback_;
    Diagnostics* const diagnostics_;
};

/// The same without blocking. In a forked child the handler never runs.
template <class T>
void start_operator_call(Engine* engine, result<OperatorVerb<T>> verb, Diagnostics* diagnostics,
                         asio::any_completion_handler<void(error_code, T)> handler) {
    const auto refuse = [&](error_code ec) {
        if (engine != nullptr)
            engine->complete(std::move(handler), ec, T());
        else
            complete_on_system(std::move(handler), ec, T());
    };
    if (engine == nullptr) return refuse(make_error_code(errc::closed));
    if (engine->forked()) return;
    if (!verb) return refuse(verb.error());
    if (engine->closed()) return refuse(make_error_code(errc::closed));
    begin_operator_call<T>(*engine, std::move(*verb),
                           std::make_shared<OperatorHandler<T>>(engine->shared_from_this(),
                                                                std::move(handler), diagnostics));
}

}  // namespace holdfast
