#include "lane.hpp"

#include "../../resp/errors.hpp"

namespace holdfast::redis {

ClusterLane::ClusterLane(std::shared_ptr<Members> members, std::string prefix)
    : members_(std::move(members)), prefix_(std::move(prefix)) {}

spi::Lane* ClusterLane::of(std::string_view name) {
    key_.assign(prefix_).append(name);
    Node* const node = members_->of(slot_of(key_));
    if (node == nullptr) return nullptr;
    for (const auto& [of, lane] : lanes_)
        if (of == node) return lane.get();
    return lanes_.emplace_back(node, node->backend->open_lane()).second.get();
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
