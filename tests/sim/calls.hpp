// Calls of a worker that block or not, by chance, and may be cancelled meanwhile.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <memory>

#include "worker.hpp"

namespace holdfast::sim {

/// `wait` gets a stop_token and blocks, `start` gets a handler.
template <class Got, class Wait, class Start>
std::pair<error_code, Got> Worker::call(bool blocking, Nanos cancel_after, Wait wait, Start start) {
    Kernel& k = world_.kernel;
    if (blocking) {
        std::stop_source stop;
        if (cancel_after < never)
            k.start(user_.process, "stopper", [stop, cancel_after, &k]() mutable {
                k.rest(cancel_after);
                stop.request_stop();
            });
        auto got = wait(stop.get_token());
        if (got) return {error_code(), std::move(*got)};
        return {got.error(), Got()};
    }
    const auto call = std::make_shared<Call<Got>>();
    const auto signal = std::make_shared<asio::cancellation_signal>();
    call->kernel = &k;
    call->waits = k.current();
    auto handler = [call](error_code ec, Got got) { call->ended(ec, std::move(got)); };
    if (world_.with_loop_) {
        auto& loop = *user_.loop;
        asio::post(loop, [&start, signal, &loop, handler] {
            start(asio::bind_executor(loop.get_executor(),
                                      asio::bind_cancellation_slot(signal->slot(), handler)));
        });
    } else {
        start(handler);
    }
    const Nanos cancel_at = cancel_after < never ? k.now() + cancel_after : never;
    bool emitted = !world_.with_loop_;
    while (call->ends == 0) {
        if (k.now() >= cancel_at && !emitted) {
            emitted = true;
            asio::post(*user_.loop, [signal] { signal->emit(asio::cancellation_type::terminal); });
            continue;  // it may have ended meanwhile
        }
        k.block(emitted ? never : cancel_at);
    }
    call->waits = nullptr;
    if (call->ends > 1) world_.fail("a call ended twice");
    return {call->error, std::move(call->got)};
}

/// A lease, or a set of them.
template <class Held>
ReleaseResult Worker::ask_release(Held& held, Outcome outcome) {
    if (random().chance(500)) return held.release(outcome);
    Kernel& k = world_.kernel;
    const auto call = std::make_shared<Call<ReleaseResult>>();
    call->kernel = &k;
    call->waits = k.current();
    held.async_release(outcome, [call](error_code ec, ReleaseResult r) { call->ended(ec, r); });
    while (call->ends == 0)
        k.block(never);
    call->waits = nullptr;
    if (call->ends > 1) world_.fail("a release ended twice");
    return call->got;
}

}  // namespace holdfast::sim
