#include "lease_index.hpp"

#include "lease_impl.hpp"

namespace holdfast {

void LeaseIndex::add(LeaseImpl& grant) {
    const std::lock_guard hold(mutex_);
    by_owner_.emplace(grant.owner(), &grant);
}

void LeaseIndex::remove(const LeaseImpl& grant) noexcept {
    const std::lock_guard hold(mutex_);
    by_owner_.erase(grant.owner());
}

std::shared_ptr<LeaseImpl> LeaseIndex::find(std::string_view owner) const {
    const std::lock_guard hold(mutex_);
    const auto at = by_owner_.find(owner);
    if (at == by_owner_.end()) return nullptr;
    return std::static_pointer_cast<LeaseImpl>(at->second->weak_from_this().lock());
}

std::vector<std::shared_ptr<LeaseImpl>> LeaseIndex::all() const {
    std::vector<std::shared_ptr<LeaseImpl>> out;
    const std::lock_guard hold(mutex_);
    out.reserve(by_owner_.size());
    for (const auto& [owner, grant] : by_owner_)
        if (auto alive = grant->weak_from_this().lock())
            out.push_back(std::static_pointer_cast<LeaseImpl>(std::move(alive)));
    return out;
}

}  // namespace holdfast
