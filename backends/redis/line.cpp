// Who of this client stands in line, and what a hand-over message means: a grant without a request
// where the protocol proves it, else a hint.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "backend.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast::redis {

void FencedBackend::enrol(spi::Attempt& a) {
    place_of(a.place);
    places_.insert_or_assign(std::string(a.owner), a.place);
    if (places_.size() >= sweep_at_) sweep();
}

void FencedBackend::sweep() {
    std::erase_if(places_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(256, 2 * places_.size());
}

bool FencedBackend::anyone_waits() const {
    return std::any_of(places_.begin(), places_.end(), [](const auto& entry) {
        const auto place = entry.second.lock();
        const Place* p = find_place(place);
        return p != nullptr && p->queued;
    });
}

void FencedBackend::on_message(std::string_view payload) {
    std::string_view rest = payload;
    const std::string_view owner = word(rest);
    const auto token = static_cast<std::uint64_t>(number(word(rest)));
    const std::string_view told = word(rest);
    const std::string_view key = rest;
    const std::string& prefix = shared_->options.prefix;
    if (token == 0 || told.size() != 1 || !key.starts_with(prefix)) return;
    const auto known = places_.find(owner);
    const auto place = known == places_.end() ? nullptr : known->second.lock();
    if (Place* p = find_place(place)) {
        p->handed = Place::Handed{token, previous_from(told.front())};
        return context_.sink.wake(owner);
    }
    // Nobody here wants it any more: it must not stay with us until the window is over.
    auto task = give_back(std::string(key.substr(prefix.size())), std::string(owner));
    asio::co_spawn(context_.engine, std::move(task), asio::detached);
}

void FencedBackend::on_gap() {
    std::vector<std::string> waiting;
    for (const auto& [owner, place] : places_)
        if (!place.expired()) waiting.push_back(owner);
    for (const std::string& owner : waiting)
        context_.sink.wake(owner);
}

bool FencedBackend::take_handed(spi::Attempt& a, boot_clock::time_point now) const {
    // A message says nothing of replicas: the look that it causes does.
    if (shared_->options.replicas > 0) return false;
    Place* p = find_place(a.place);
    if (p == nullptr || !p->queued || !p->handed) return false;
    const Place::Handed handed = *p->handed;
    p->handed.reset();
    // Not newer than what the last look saw: that hand-over was over before it.
    if (handed.token <= p->seen) return false;
    const auto until = p->base + p->window - spi::drift(p->window);
    if (until - now < p->window / 3) return false;
    spi::Attempt::Granted g;
    g.token.value = handed.token;
    g.previous = handed.previous;
    g.ttl = p->window;
    g.base = p->base;
    a.outcome = g;
    p->queued = false;
    p->unclaimed = true;
    return true;
}

}  // namespace holdfast::redis
