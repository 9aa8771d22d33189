#include "etcd.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

constexpr Nanos request_limit = 7 * second;  // of a member, for what finds no leader

}  // namespace

// --- the cluster

EtcdCluster::EtcdCluster(Kernel& k, std::size_t members) : kernel_(k) {
    for (std::size_t i = 0; i < members; ++i)
        members_.push_back(std::make_unique<EtcdMember>(*this, k, i));
    leader_ = k.random().below(members);
    store_.shortest_lease = 0;
    if (k.random().chance(300))
        for (std::size_t i = 0; i < members; ++i)
            if (i != leader_) members_[i]->shortest_lease = k.random().chance(500) ? 5 : 2;
    tick();
}
EtcdCluster::~EtcdCluster() = default;

bool EtcdCluster::serves(std::size_t i) const {
    const EtcdMember& m = *members_[i];
    return m.up && kernel_.now() >= m.machine.frozen_until;
}

bool EtcdCluster::hears_others(std::size_t i) const {
    return serves(i) && (members_.size() == 1 || kernel_.now() >= members_[i]->isolated_until);
}

bool EtcdCluster::reaches_leader(std::size_t i) const {
    if (leader_ == none || !hears_others(leader_) || !hears_others(i)) return false;
    std::size_t together = 0;
    for (std::size_t one = 0; one < members_.size(); ++one)
        together += hears_others(one) ? 1 : 0;
    return together > members_.size() / 2;
}

void EtcdCluster::propose(std::size_t member, std::function<void(bool)> what) {
    if (reaches_leader(member)) return what(true);
    waiting_.push_back({member, std::move(what), kernel_.now() + request_limit, false});
    kernel_.after(request_limit, [this] { go_on(); });
}

/// What has waited too long is answered with an error, and may all the same be done.
void EtcdCluster::go_on() {
    for (Request& r : std::exchange(waiting_, {})) {
        if (!serves(r.member)) {
            if (!members_[r.member]->up) continue;  // its session is gone as well
        } else if (reaches_leader(r.member)) {
            // A change of leader loses some proposals.
            r.what(!r.dropped || kernel_.random().chance(600));
            continue;
        } else if (kernel_.now() >= r.until) {
            r.what(false);
            continue;
        }
        waiting_.push_back(std::move(r));
    }
}

void EtcdCluster::elect_later() {
    leader_ = none;
    for (Request& r : waiting_)
        r.dropped = true;
    const unsigned number = ++elections_;
    kernel_.after(kernel_.random().between(1000 * ms, 2200 * ms), [this, number] {
        if (number == elections_) elect();
    });
}

void EtcdCluster::elect() {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < members_.size(); ++i)
        if (hears_others(i)) able.push_back(i);
    if (able.size() <= members_.size() / 2) {
        const unsigned number = ++elections_;
        kernel_.after(kernel_.random().between(200 * ms, 600 * ms), [this, number] {
            if (number == elections_) elect();
        });
        return;
    }
    leader_ = able[kernel_.random().below(able.size())];
    kernel_.trace("etcd", "member" + std::to_string(leader_) + " leads");
    // It lets each lease last for its whole time, by its own clock, and an election longer.
    EtcdMember& m = *members_[leader_];
    const Nanos now = m.machine.clock(kernel_.now());
    ends_.clear();
    for (const auto& [id, lease] : store_.leases)
        ends_[id] = now + std::max(lease.seconds, m.shortest_lease) * second + second;
    go_on();
}

Nanos EtcdCluster::ends(std::int64_t lease) const {
    const auto at = ends_.find(lease);
    if (leader_ == none || at == ends_.end()) return never;
    return members_[leader_]->machine.when(at->second);
}

Nanos EtcdCluster::left(std::int64_t lease) const {
    const auto at = ends_.find(lease);
    const Nanos now = members_[leader_]->machine.clock(kernel_.now());
    return at == ends_.end() ? -1 : at->second - now;
}

void EtcdCluster::let_last(std::int64_t lease, std::int64_t seconds) {
    const EtcdMember& m = *members_[leader_];
    ends_[lease] = m.machine.clock(kernel_.now()) + std::max(seconds, m.shortest_lease) * second;
}

void EtcdCluster::tick() {
    kernel_.after(kernel_.random().between(400 * ms, 600 * ms), [this] { tick(); });
    if (leader_ == none) return;
    EtcdMember& m = *members_[leader_];
    if (!reaches_leader(leader_)) return;
    const Nanos now = m.machine.clock(kernel_.now());
    std::vector<std::int64_t> over;
    for (const auto& [id, ends] : ends_)
        if (ends < now) over.push_back(id);
    for (const std::int64_t id : over) {
        if (store_.lease(id) != nullptr) kernel_.trace("etcd", "ends lease " + std::to_string(id));
        store_.end(id);
        ends_.erase(id);
    }
    if (!over.empty()) changed();
}

void EtcdCluster::changed() {
    for (const auto& m : members_)
        m->tell_later();
}

void EtcdCluster::end_as_it_was_known(std::size_t member) {
    EtcdMember& m = *members_[member];
    const auto known = std::exchange(m.led_with_, {});
    const Nanos now = m.machine.clock(kernel_.now());
    if (!kernel_.random().chance(500)) return;
    for (const auto& [id, ends] : known) {
        if (ends >= now || store_.lease(id) == nullptr) continue;
        kernel_.trace("etcd", m.name() + " ends lease " + std::to_string(id) + ", as it led once");
        store_.end(id);
        ends_.erase(id);
    }
    changed();
}

void EtcdCluster::restart(std::size_t i, Nanos down) {
    EtcdMember& m = *members_[i];
    if (!m.listens()) return;
    if (kernel_.random().chance(400)) {
        m.say_farewell();
        kernel_.after(kernel_.random().between(0, down / 2), [this, i] {
            if (members_[i]->leaving) stop(i);
        });
    } else {
        stop(i);
    }
    kernel_.after(down, [this, i] {
        if (std::exchange(members_[i]->up, true)) return;
        members_[i]->machine.frozen_until = kernel_.now();
        if (leader_ == none) elect_later();
        go_on();
    });
}

void EtcdCluster::stop(std::size_t i) {
    EtcdMember& m = *members_[i];
    m.up = m.leaving = false;
    m.drop_sessions();
    std::erase_if(waiting_, [&](const Request& r) { return r.member == i; });
    if (leader_ == i) elect_later();
}

void EtcdCluster::pause(std::size_t i, Nanos until) {
    EtcdMember& m = *members_[i];
    m.machine.frozen_until = std::max(m.machine.frozen_until, until);
    const bool led = leader_ == i;
    if (led) m.led_with_ = ends_;
    // The others notice after an election's time.
    if (led && members_.size() > 1)
        kernel_.after(kernel_.random().between(second, 2 * second), [this, i] {
            if (leader_ == i && !serves(i)) elect_later();
        });
    kernel_.at(until, [this, i] {
        if (!serves(i)) return;
        if (leader_ != i) end_as_it_was_known(i);
        members_[i]->tell_later();
        go_on();
    });
}

void EtcdCluster::isolate(std::size_t i, Nanos until) {
    if (members_.size() == 1) return;
    EtcdMember& m = *members_[i];
    m.isolated_until = std::max(m.isolated_until, until);
    if (leader_ == i)
        kernel_.after(kernel_.random().between(second, 2 * second), [this, i] {
            if (leader_ == i && kernel_.now() < members_[i]->isolated_until) elect_later();
        });
    kernel_.at(until, [this, i] {
        if (kernel_.now() < members_[i]->isolated_until) return;
        members_[i]->tell_later();
        go_on();
    });
}

void EtcdCluster::flush() {
    store_ = {};
    store_.shortest_lease = 0;
    ends_.clear();
}

void EtcdCluster::recover() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        EtcdMember& m = *members_[i];
        m.up = true;
        m.leaving = false;
        m.machine.frozen_until = m.isolated_until = kernel_.now();
        m.tell_later();
    }
    if (leader_ == none) elect();
    go_on();
}

}  // namespace holdfast::sim
