#include "queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "call.hpp"
#include "sized.hpp"

namespace holdfast::c {
namespace {

int new_eventfd() {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) throw std::system_error(errno, std::system_category(), "eventfd");
    return fd;
}

/// Makes of a grant the answer of a call that was cancelled. Returns the lease, to be destroyed
/// without the mutex: nobody asks for it any more, and it may be that nobody takes the answer.
std::unique_ptr<hf_lease> withdraw(Queue::Answer& a) {
    if (a.lease) a.why = Failure(make_error_code(errc::cancelled));
    return std::move(a.lease);
}

}  // namespace

Queue::Queue() : fd_(new_eventfd()) {}

Queue::~Queue() {
    ::close(fd_);
}

std::uint64_t Queue::add(std::shared_ptr<Call> call) {
    const auto state = state_.access();
    if (!state) return 0;
    state->calls.emplace(++state->last, Pending{std::move(call)});
    return state->last;
}

void Queue::answer(Answer a) {
    Pending done;  // destroyed without the mutex, as is the answer of a closed queue
    std::unique_ptr<hf_lease> unwanted;
    const auto state = state_.access();
    if (!state) return;
    const auto at = state->calls.find(a.call);
    if (at != state->calls.end()) {
        done = std::move(at->second);
        state->calls.erase(at);
    }
    if (state->closed) return;
    if (done.cancelled) unwanted = withdraw(a);
    if (state->empty()) signal();
    state->answers.push_back(std::move(a));
}

void Queue::signal() const noexcept {
    (void)::eventfd_write(fd_, 1);
}

void Queue::clear() const noexcept {
    eventfd_t count = 0;
    (void)::eventfd_read(fd_, &count);
}

void Queue::report(const Event& e) {
    const auto state = state_.access();
    if (!state || state->closed) return;
    if (state->empty()) signal();
    auto& reports = state->reports;
    if (reports.size() == most) {
        const auto old = std::find_if(reports.begin(), reports.end(),
                                      [](const Event& r) { return r.kind != Event::Kind::lost; });
        reports.erase(old == reports.end() ? reports.begin() : old);
        ++state->dropped;
    }
    reports.push_back(e);
}

std::optional<Event> Queue::next_report() {
    const auto state = state_.access();
    if (!state || state->reports.empty()) return {};
    Event e = std::move(state->reports.front());
    state->reports.pop_front();
    e.dropped += std::exchange(state->dropped, 0);
    if (state->empty()) clear();
    return e;
}

void Queue::remove(std::uint64_t call) {
    if (const auto state = state_.access()) state->calls.erase(call);
}

void Queue::cancel(std::uint64_t number) {
    std::shared_ptr<Call> call;
    std::unique_ptr<hf_lease> unwanted;
    if (const auto state = state_.access()) {
        const auto at = state->calls.find(number);
        if (at != state->calls.end()) {
            at->second.cancelled = true;
            call = at->second.call;
        } else {
            const auto a = std::find_if(state->answers.begin(), state->answers.end(),
                                        [&](const Answer& each) { return each.call == number; });
            if (a != state->answers.end()) unwanted = withdraw(*a);
        }
    }
    if (call) call->cancel();
}

std::optional<Queue::Answer> Queue::next() {
    const auto state = state_.access();
    if (!state || state->answers.empty()) return {};
    Answer a = std::move(state->answers.front());
    state->answers.pop_front();
    if (state->empty()) clear();
    return a;
}

void Queue::close() {
    std::map<std::uint64_t, Pending> calls;
    std::deque<Answer> answers;
    if (const auto state = state_.access()) {
        state->closed = true;
        calls = state->calls;
        answers.swap(state->answers);
        state->reports.clear();
    }
    for (const auto& [number, pending] : calls)
        pending.call->cancel();
}

}  // namespace holdfast::c

using namespace holdfast;

int hf_queue_new(hf_queue** queue, hf_error* error) {
    return c::guarded(error, [&] {
        *queue = new hf_queue{std::make_shared<c::Queue>()};
        return c::Failure();
    });
}

void hf_queue_free(hf_queue* queue) {
    if (queue == nullptr) return;
    c::guarded(nullptr, [&] {
        queue->queue->close();
        return c::Failure();
    });
    delete queue;
}

int hf_queue_fd(const hf_queue* queue) {
    return queue->queue->fd();
}

void hf_cancel(hf_queue* queue, uint64_t call) {
    c::guarded(nullptr, [&] {
        queue->queue->cancel(call);
        return c::Failure();
    });
}

int hf_queue_next(hf_queue* queue, hf_event* event) {
    auto answer = queue->queue->next();
    if (!answer) return 0;
    hf_event e = HF_EVENT;
    e.call = answer->call;
    e.lease = answer->lease.release();
    c::tell(&e.error, answer->why);
    if (answer->json && event->size >= sizeof e)  // an older caller asks no questions
        c::guarded(&e.error, [&] {
            e.json = c::copied(*answer->json);
            return c::Failure();
        });
    c::give(*event, e);
    return 1;
}
