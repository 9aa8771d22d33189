// One call that does not block, from its start to its answer in a queue.
#pragma once
#include "../../src/cancellable.hpp"
#include "queue.hpp"

namespace holdfast::c {

/// How the release of a lease ended.
Failure of_release(ReleaseResult, error_code, std::string words);

class Call final : public Cancellable {
public:
    explicit Call(std::shared_ptr<Queue> queue) noexcept : queue_(std::move(queue)) {}

    /// Calls `begin(handler, words)`, which starts an asynchronous operation of the library. Writes
    /// the number before the answer can be there.
    template <class Begin>
    static void start(const std::shared_ptr<Queue>& queue, std::uint64_t& number, Begin begin) {
        const auto call = std::make_shared<Call>(queue);
        call->number_ = number = queue->add(call);
        try {
            call->Cancellable::start(Answered{call},
                                     [call, begin = std::move(begin)](auto handler) mutable {
                                         begin(std::move(handler), call->words_);
                                     });
        } catch (...) {
            queue->remove(call->number_);
            throw;
        }
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
        void operator()(error_code ec, std::string json) const {
            if (ec)
                call->answer({}, Failure(ec, call->words_));
            else
                call->queue_->answer({call->number_, {}, {}, std::move(json)});
        }
    };
    void granted(error_code ec, hf_lease::Held held) {
        if (ec)
            answer({}, Failure(ec, words_));
        else
            answer(std::make_unique<hf_lease>(std::move(held)), {});
    }
    void answer(std::unique_ptr<hf_lease> lease, Failure why) {
        queue_->answer({number_, std::move(lease), std::move(why), {}});
    }

    const std::shared_ptr<Queue> queue_;
    std::uint64_t number_ = 0;
    Diagnostics words_;
};

}  // namespace holdfast::c
