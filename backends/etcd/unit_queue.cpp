#include "unit_queue.hpp"

#include <iterator>

#include "keys.hpp"

namespace holdfast::etcd {

UnitQueue::UnitQueue(const std::vector<KeyValue>& all) {
    for (const KeyValue& kv : all) {
        keys_[kv.created] = {kv.key, units_in(kv.value)};
        created_[kv.key] = kv.created;
    }
    extend();
}

void UnitQueue::add(const KeyValue& kv) {
    keys_[kv.created] = {kv.key, units_in(kv.value)};
    created_[kv.key] = kv.created;
    extend();
}

void UnitQueue::remove(std::int64_t created) {
    const auto at = keys_.find(created);
    if (at == keys_.end()) return;
    if (created <= reach_) sum_ -= at->second.units.take;
    if (created == reach_) reach_ = at == keys_.begin() ? 0 : std::prev(at)->first;
    created_.erase(at->second.key);
    keys_.erase(at);
    extend();
}

void UnitQueue::change(std::int64_t created, std::string_view value) {
    const auto at = keys_.find(created);
    if (at == keys_.end()) return;
    const spi::Units units = units_in(value);
    if (created <= reach_) sum_ = sum_ - at->second.units.take + units.take;
    at->second.units = units;
    extend();
}

/// Those of another limit do not fit: no line has them, unless a stranger wrote one.
void UnitQueue::extend() {
    auto next = keys_.upper_bound(reach_);
    const std::uint32_t limit = keys_.empty() ? 0 : keys_.begin()->second.units.of;
    for (; next != keys_.end(); ++next) {
        const spi::Units& units = next->second.units;
        if (units.of != limit || sum_ + units.take > limit) return;
        sum_ += units.take;
        reach_ = next->first;
    }
}

std::int64_t UnitQueue::created(const std::string& key) const noexcept {
    const auto at = created_.find(key);
    return at == created_.end() ? 0 : at->second;
}

const std::string* UnitQueue::ahead(std::int64_t created,
                                    std::int64_t* its_creation) const noexcept {
    auto next = keys_.lower_bound(created);
    if (next == keys_.begin()) return nullptr;
    --next;
    *its_creation = next->first;
    return &next->second.key;
}

}  // namespace holdfast::etcd
