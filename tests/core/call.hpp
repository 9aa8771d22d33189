// One asynchronous call, and what became of it.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <future>
#include <holdfast/error.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <memory>
#include <utility>

template <class Result>
struct Call {
    using Ended = std::pair<holdfast::error_code, Result>;
    struct State {
        std::promise<Ended> ended;
        boost::asio::cancellation_signal signal;
    };
    /// `start` is given the handler.
    template <class Start>
    explicit Call(Start start) {
        start(boost::asio::bind_cancellation_slot(state->signal.slot(),
                                                  [s = state](holdfast::error_code ec, Result r) {
                                                      s->ended.set_value({ec, std::move(r)});
                                                  }));
    }
    bool done() const {
        return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
    Ended take() {
        holdfast::lab::wait_until([&] { return done(); }, std::chrono::seconds(10), "it ends");
        return future.get();
    }
    std::shared_ptr<State> state = std::make_shared<State>();
    std::future<Ended> future = state->ended.get_future();
};
