#include "completion.hpp"

#include <boost/asio/execution_context.hpp>

namespace holdfast {
namespace {

/// Lives in a loop, which notifies it of its end. Made by Asio's use_service.
class Service final : public asio::execution_context::service {
public:
    static asio::execution_context::id id;
    explicit Service(asio::execution_context& c) : service(c) {}
    const std::shared_ptr<LoopEnd> end = std::make_shared<LoopEnd>();

private:
    void shutdown() override { end->come(); }
};

asio::execution_context::id Service::id;

}  // namespace

asio::any_completion_executor bare(asio::any_completion_executor e) noexcept {
    asio::any_completion_executor found;
    const auto untracked = [&](const auto& loop) {
        found = asio::require(loop, asio::execution::outstanding_work.untracked);
    };
    return if_loop(e, untracked) ? found : e;
}

std::shared_ptr<LoopEnd> LoopEnd::of(const asio::any_completion_executor& e) {
    // A thread mostly asks for the same loop again. Another one may be where one that ended was.
    thread_local const asio::execution_context* last = nullptr;
    thread_local std::shared_ptr<LoopEnd> its_end;
    const bool found = if_it_queues(e, [](const auto&, const auto& inner) {
        asio::execution_context& loop = asio::query(inner, asio::execution::context);
        if (last == &loop && !its_end->came_) return;
        its_end = asio::use_service<Service>(loop).end;
        last = &loop;
    });
    return found ? its_end : nullptr;
}

void LoopEnd::come() {
    // The mutex is the parent's, and so are those that wait, in whatever state a fork found them.
    if (fork_generation() != born_) {
        came_ = true;
        return;
    }
    std::vector<CallbackPool::Job> remains;  // user code, which may end in here again
    const auto hold = lock();                // let go of before they are destroyed
    came_ = true;
    while (!waiting_.empty()) {
        Waiting& w = waiting_.front();
        waiting_.pop_front();
        remains.push_back(w.remains());
    }
}

}  // namespace holdfast
