// Completes a handler where there is no engine: on the handler's own executor, else on a thread
// that is started for it.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/system_executor.hpp>
#include <system_error>
#include <utility>

#include "completion.hpp"
#include "holdfast/spi/signal_masked_thread.hpp"

namespace holdfast {

/// Takes the place of a CallbackPool: a thread for each job.
struct OwnThreads {
    static void post(CallbackPool::Job job) {
        // The machine may have no more threads; then the job is done here, since nobody else can.
        auto shared = std::make_shared<CallbackPool::Job>(std::move(job));
        try {
            spi::signal_masked_thread([shared] { std::move (*shared)(); }).detach();
        } catch (const std::system_error&) {
            std::move (*shared)();
        }
    }
};

/// A handler that will be completed without an engine.
template <class Signature>
class SystemCallback {
public:
    explicit SystemCallback(asio::any_completion_handler<Signature> h, Orphan* owner = nullptr)
        : callback_(std::move(h), asio::system_executor(), owner) {}
    template <class... Args>
    void complete(Args... args) {
        OwnThreads threads;
        callback_.complete(threads, std::move(args)...);
    }

private:
    Callback<Signature> callback_;
};

/// Never inside this call.
template <class Signature, class... Args>
void complete_on_system(asio::any_completion_handler<Signature> h, Args... args) {
    SystemCallback<Signature>(std::move(h)).complete(std::move(args)...);
}

}  // namespace holdfast
