#include "listening.hpp"

#include <algorithm>
#include <bit>

#include "owner_state.hpp"

namespace holdfast::redlock {

Listening::Listening(const spi::Context& c, NodeSet& set, tls::Context* tls)
    : events_(c.events), channel_(resp::make_channel()) {
    for (const auto& node : set.nodes) {
        resp::Subscriber::Listener on;
        on.message = [this, i = node->index](std::string_view owner) { said(i, owner); };
        on.again = [this] { missed(); };
        on.wanted = [this] {
            return waiters_.any(
                [](const std::shared_ptr<void>& place) { return place != nullptr; });
        };
        on.warn = [this, where = node->where](const std::string& text) {
            events_.warn(where + ": " + text);
        };
        nodes_.push_back(std::make_shared<resp::Subscriber>(c.engine, node->server, tls, channel_,
                                                            std::move(on)));
    }
}

bool Listening::works() const noexcept {
    const auto heard = std::count_if(nodes_.begin(), nodes_.end(),
                                     [](const auto& node) { return node->subscribed(); });
    return static_cast<std::size_t>(heard) >= majority(nodes_.size());
}

asio::awaitable<void> Listening::ready(boot_clock::time_point deadline) {
    for (const auto& node : nodes_)
        node->start();
    for (std::size_t i = 0; i < nodes_.size() && !works(); ++i) {
        auto task = nodes_[i]->ready(deadline);
        co_await std::move(task);
    }
}

void Listening::add(spi::Attempt& a) {
    state_of(a.place);
    waiters_.add(a.owner, a.place);
}

void Listening::said(std::size_t node, std::string_view owner) {
    const auto* const known = waiters_.find(owner);
    const auto place = known == nullptr ? nullptr : known->lock();
    OwnerState* const p = find_state(place);
    if (p == nullptr) return;
    p->told |= 1U << node;
    if (static_cast<std::size_t>(std::popcount(p->told)) < majority(nodes_.size())) return;
    p->told = 0;
    events_.wake(owner);
}

void Listening::missed() {
    for (const std::string& owner : waiters_.present())
        events_.wake(owner);
}

void Listening::close() noexcept {
    for (const auto& node : nodes_)
        node->close();
}

}  // namespace holdfast::redlock
