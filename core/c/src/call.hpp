// One call that does not block, from its start to its answer in a queue.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "../../src/serial.hpp"
#include "queue.hpp"

namespace holdfast::c {

/// How the release of a lease ended.
Failure of_release(ReleaseResult, error_code, std::string words);

/// A cancellation signal must not be emitted while the handler runs, so a Serial runs both in turn.
class Call : public std::enable_shared_from_this<Call> {
public:
    explicit Call(std::shared_ptr<Queue> queue) noexcept : queue_(std::move(queue)) {}

    /// Calls `begin(handler, words)`, which starts an asynchronous operation of the library. Writes
    /// the number before the answer can be there.
    template <class Begin>
    static void start(const std::shared_ptr<Queue>& queue, std::uint64_t& number, Begin begin) {
        const auto call = std::make_shared<Call>(queue);
        call->number_ = number = queue->add(call);
        try {
            Serial::run(call->serial_, [call, begin = std::move(begin)]() mutable {
                begin(asio::bind_executor(
                          SerialExecutor(call->serial_),
                          asio::bind_cancellation_slot(call->cancel_.slot(), Answered{call})),
                      call->words_);
                if (call->cancelled_) call->emit();
            });
        } catch (...) {
            queue->remove(call->number_);
            throw;
        }
    }
    void cancel() {
        Serial::run(serial_, [call = shared_from_this()] {
            call->cancelled_ = true;
            call->emit();
        });
    }

private:
    struct Answered {
        std::shared_ptr<Call> call;
        void operator()(error_code ec, Lease lease) const { call->granted(ec, std::move(lease)); }
        void operator()(error_code ec, LeaseSet set) const { call->granted(ec, std::move(set)); }
        void operator()(error_code ec) const { call->answer({}, Failure(ec, call->words_)); }
        void operator()(error_code ec, ReleaseResult r) const {
            call->answer({}, of_release(r, ec, {}));
        }
    };
    void granted(error_code ec, hf_lease::Held held) {
        if (ec)
            answer({}, Failure(ec, words_));
        else
            answer(std::make_unique<hf_lease>(std::move(held)), {});
    }
    void answer(std::unique_ptr<hf_lease> lease, Failure why) {
        queue_->answer({number_, std::move(lease), std::move(why)});
    }
    void emit() { cancel_.emit(asio::cancellation_type::terminal); }

    const std::shared_ptr<Queue> queue_;
    const std::shared_ptr<Serial> serial_ = std::make_shared<Serial>();
    std::uint64_t number_ = 0;
    Diagnostics words_;
    asio::cancellation_signal cancel_;  // this and the next: only in jobs of the Serial
    bool cancelled_ = false;
};

}  // namespace holdfast::c
