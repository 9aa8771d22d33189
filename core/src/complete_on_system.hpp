// Completes a handler without an engine: on the handler's own executor, else on a new thread.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/system_executor.hpp>
#include <system_error>
#include <utility>

#include "completion.hpp"
#include "holdfast/spi/signal_masked_thread.hpp"

namespace holdfast {

/// In place of a CallbackPool: a thread for each job.
struct OwnThreads {
    static void post(CallbackPool::Job job) {
        // If the machine has no more threads, the job runs here: no other thread will.
        auto shared = std::make_shared<CallbackPool::Job>(std::move(job));
        try {
            spi::signal_masked_thread([shared] { std::move (*shared)(); }).detach();
        } catch (const std::system_error&) {
            std::move (*shared)();
        }
    }
};

/// A handler to be completed without an engine.
template <class Signature>
class SystemCallback {
public:
    explicit SystemCallback(asio::any_completion_handler<Signature> h, Orphan* owner = nullptr)
        : callback_(std::move(h), asio::system_executor(), owner) {}
    /// See Callback::while_alive.
    template <class F>
    void while_alive(F f) {
        callback_.while_alive(std::move(f));
    }
    template <class... Args>
    void complete(Args... args) {
        OwnThreads threads;
        callback_.complete(threads, std::move(args)...);
    }

private:
    Callback<Signature> callback_;
};

/// Completes the handler, never inside this call.
template <class Signature, class... Args>
void complete_on_system(asio::any_completion_handler<Signature> h, Args... args) {
    SystemCallback<Signature>(std::move(h)).complete(std::move(args)...);
}

}  // namespace holdfast
