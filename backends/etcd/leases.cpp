#include "leases.hpp"

#include <algorithm>
#include <boost/scope_exit.hpp>
#include <utility>

#include "errors.hpp"

namespace holdfast::etcd {
namespace {

bool is_young(const Lease& l) {
    const auto most = std::min(l.ttl / 20, milliseconds(500));
    return l.id != 0 && boot_clock::now() < l.base + most;
}

}  // namespace

Leases::Leases(std::shared_ptr<Shared> s, std::shared_ptr<Members> m)
    : shared_(std::move(s)), members_(std::move(m)) {}

awaitable<spi::Answer<Lease>> Leases::grant(milliseconds ttl, boot_clock::time_point deadline) {
    const std::int64_t seconds = (ttl.count() + 999) / 1000;
    const auto base = boot_clock::now();
    rpc::LeaseGrantRequest request;
    request.set_ttl(seconds);
    rpc::LeaseGrantResponse reply;
    auto task = members_->post(method::lease_grant, request, reply, deadline);
    Members::Answer answer = co_await std::move(task);
    if (answer) co_return spi::Failure(std::move(answer));
    Lease l;
    l.id = reply.id();
    // A member raises a short time to live by its own --election-timeout, and another one may lead.
    l.ttl = std::chrono::seconds(std::clamp<std::int64_t>(reply.ttl(), 0, seconds));
    l.base = base;
    if (l.id == 0 || l.ttl.count() <= 0) co_return make(Error::protocol);
    co_return l;
}

awaitable<spi::Answer<Lease>> Leases::shared_grant(Slot& slot, milliseconds ttl,
                                                   boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const unsigned failures = slot.failures;
    for (;;) {
        if (is_young(slot.lease)) co_return slot.lease;
        if (slot.failures != failures) co_return slot.why;
        if (boot_clock::now() >= deadline) co_return make(Error::no_answer);
        if (slot.asking) {
            auto wait = slot.gate.wait(shared_->engine, deadline);
            co_await std::move(wait);
            continue;
        }
        slot.asking = true;
        BOOST_SCOPE_EXIT_ALL(&slot) {
            slot.asking = false;
            slot.gate.open();
        };
        auto task = grant(ttl, deadline);
        const spi::Answer<Lease> granted = co_await std::move(task);
        if (granted) {
            slot.lease = *granted;
            co_return *granted;  // however long the answer took: its base says so
        }
        ++slot.failures;
        slot.why = granted.error();
    }
}

const Lease* Leases::young_at_hand(milliseconds ttl) const noexcept {
    const auto at = slots_.find(ttl);
    return at != slots_.end() && is_young(at->second.lease) ? &at->second.lease : nullptr;
}

awaitable<spi::Answer<Lease>> Leases::young(milliseconds ttl, boot_clock::time_point deadline) {
    return shared_grant(slots_[ttl], ttl, deadline);
}

bool Leases::waiting_alive() const noexcept {
    return waiting_.id != 0 && boot_clock::now() < waiting_.base + waiting_.ttl * 2 / 3;
}

awaitable<spi::Answer<Lease>> Leases::for_waiting(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    if (waiting_alive()) co_return waiting_;
    auto task = shared_grant(for_waiting_, shared_->options.ttl, deadline);
    const spi::Answer<Lease> granted = co_await std::move(task);
    if (granted && granted->id != waiting_.id && !waiting_alive()) waiting_ = *granted;
    if (!granted) co_return granted.error();
    co_return waiting_;
}

awaitable<bool> Leases::keep_waiting(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const std::int64_t id = waiting_.id;
    const auto base = boot_clock::now();
    rpc::LeaseKeepAliveRequest request;
    request.set_id(id);
    rpc::LeaseKeepAliveResponse reply;
    auto task = members_->post(method::lease_keep_alive, request, reply, deadline);
    const Members::Answer answer = co_await std::move(task);
    if (waiting_.id != id) co_return true;
    if (answer.why == make(Error::no_lease) || (!answer.why && reply.ttl() <= 0)) {
        waiting_ = {};
        co_return false;
    }
    if (!answer.why) waiting_.base = base;
    co_return true;
}

void Leases::leave_waiting() noexcept {
    waiting_ = {};
    for_waiting_.lease = {};
}

void Leases::forget() noexcept {
    for (auto& [ttl, slot] : slots_)
        slot.lease = {};
    leave_waiting();
}

awaitable<void> Leases::end(std::int64_t id, boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    rpc::LeaseRevokeRequest request;
    request.set_id(id);
    rpc::LeaseRevokeResponse reply;
    auto task = members_->post(method::lease_revoke, request, reply, deadline);
    co_await std::move(task);
}

}  // namespace holdfast::etcd
