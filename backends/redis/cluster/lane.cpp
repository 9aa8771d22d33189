#include "lane.hpp"

#include "../../resp/errors.hpp"

namespace holdfast::redis {

ClusterLane::ClusterLane(std::shared_ptr<Members> members, std::string prefix)
    : members_(std::move(members)), prefix_(std::move(prefix)) {}

spi::Lane* ClusterLane::of(std::string_view name) {
    key_.assign(prefix_).append(name);
    Node* const node = members_->of(slot_of(key_));
    if (node == nullptr) return nullptr;
    for (const Of& one : lanes_)
        if (one.node == node) return one.lane.get();
    // A server that was left may never be used again, which would close the connection to it.
    std::erase_if(lanes_, [](const Of& one) { return one.moves != one.node->backend->moves(); });
    return lanes_.emplace_back(Of{node, node->backend->moves(), node->backend->open_lane()})
        .lane.get();
}

void ClusterLane::attempt(spi::Attempt& a) noexcept {
    a.outcome = spi::Attempt::Failed{make(Error::uncovered)};
    try {
        if (spi::Lane* const lane = of(a.name)) lane->attempt(a);
    } catch (const std::exception&) {
        a.outcome = spi::Attempt::Failed{make_error_code(boost::system::errc::not_enough_memory)};
    }
}

void ClusterLane::release(spi::Held& h) noexcept {
    h.released = ReleaseResult::unreachable;
    h.release_error = make(Error::moving);
    try {
        if (spi::Lane* const lane = of(h.name)) lane->release(h);
    } catch (const std::exception&) {
        // Core releases it by the engine's connections.
    }
    // The server does not have the slot any more: the engine finds the one that has.
    if (h.release_error == make(Error::cluster)) h.release_error = make(Error::moving);
}

}  // namespace holdfast::redis
