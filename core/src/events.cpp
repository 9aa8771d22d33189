#include "events.hpp"

#include <algorithm>

#include "config/text.hpp"

namespace holdfast {
namespace {

constexpr std::chrono::seconds at_most_every{1};
constexpr std::size_t remembered_names = 10'000, remembered_texts = 1'000;

Events::Rank rank(Event::Kind kind) noexcept {
    switch (kind) {
        case Event::Kind::lost:
            return Events::loss;
        case Event::Kind::at_risk:
        case Event::Kind::recovered:
        case Event::Kind::in_doubt:
        case Event::Kind::unreachable:
        case Event::Kind::reachable:
        case Event::Kind::moved:
        case Event::Kind::warning:
            return Events::trouble;
        case Event::Kind::waiting:
        case Event::Kind::acquired:
        case Event::Kind::released:
            break;
    }
    return Events::routine;
}

}  // namespace

bool Events::too_soon(const Event& e) {
    using enum Event::Kind;
    if (e.kind != waiting && e.kind != at_risk && e.kind != unreachable) return false;
    if (last_.size() > remembered_names) last_.clear();
    const auto now = boot_clock::now();
    auto& last = last_[std::string(to_string(e.kind)) + ' ' + e.name];
    if (last != boot_clock::time_point{} && now - last < at_most_every) return true;
    last = now;
    return false;
}

void Events::tell(Event e) {
    if (!wanted()) return;
    e.text = config::printable(std::move(e.text));
    {
        const std::lock_guard hold(mutex_);
        if (too_soon(e)) return;
        queue(std::move(e));
        if (delivering_) return;
        delivering_ = true;
    }
    pool_->post([self = shared_from_this()] { self->deliver(); });
}

void Events::warn(std::string text) {
    if (!wanted()) return;
    Event e;
    e.kind = Event::Kind::warning;
    e.text = config::printable(std::move(text));
    {
        const std::lock_guard hold(mutex_);
        if (warned_.size() >= remembered_texts) warned_.clear();
        if (!warned_.insert(e.text).second) return;
    }
    tell(std::move(e));
}

void Events::queue(Event e) {
    const Rank r = rank(e.kind);
    auto& waiting = queues_[r];
    if (waiting.size() >= most[r]) {
        waiting.pop_front();
        ++dropped_[r];
    }
    waiting.push_back({++last_number_, std::move(e)});
}

/// The oldest event, or first of all what was dropped before it; false: there is none.
bool Events::next(Event& out) {
    std::deque<Waiting>* oldest = nullptr;
    for (auto& waiting : queues_)
        if (!waiting.empty() &&
            (oldest == nullptr || waiting.front().number < oldest->front().number))
            oldest = &waiting;
    if (oldest == nullptr) return false;
    std::uint64_t all = 0;
    for (const std::uint64_t n : dropped_)
        all += n;
    if (all == 0) {
        out = std::move(oldest->front().event);
        oldest->pop_front();
        return true;
    }
    out = {};
    out.kind = Event::Kind::warning;
    out.dropped = all;
    out.text = std::to_string(all) + " events were dropped, " + std::to_string(dropped_[loss]) +
               " of them losses: the sink is too slow.";
    dropped_ = {};
    return true;
}

void Events::deliver() {
    std::unique_lock hold(mutex_);
    for (Event e; next(e);) {
        hold.unlock();
        sink_(e);
        hold.lock();
    }
    delivering_ = false;
}

}  // namespace holdfast
