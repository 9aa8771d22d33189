#include "backend.hpp"

#include <algorithm>

#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::etcd {

EtcdBackend::EtcdBackend(const spi::Settings& s, spi::Context c)
    : capabilities_(promises(s)),
      shared_(std::make_shared<Shared>(s, c)),
      members_(std::make_shared<Members>(shared_)),
      leases_(std::make_shared<Leases>(shared_, members_)),
      queues_(std::make_shared<QueueCache>(shared_, members_)) {
    const Options& o = shared_->options;
    const bool local = std::all_of(o.hosts.begin(), o.hosts.end(), [](const spi::Endpoint& h) {
        return spi::on_this_machine(h.host);
    });
    for (std::string& text : tls::exposures(o.tls, !o.password.empty(), local, o.display, "etcds"))
        c.events.warn(std::move(text));
}

EtcdBackend::~EtcdBackend() {
    *gone_ = true;
}

awaitable<void> EtcdBackend::close() {
    queues_->stop();
    const auto deadline = boot_clock::now() + milliseconds(150);
    // Grants that are asked for may still come: with their leases they end.
    auto asking = std::move(asking_);
    std::sort(asking.begin(), asking.end());
    asking.erase(std::unique(asking.begin(), asking.end()), asking.end());
    for (const std::int64_t id : asking) {
        auto ending = leases_->end(id, deadline);
        co_await std::move(ending);
    }
    auto waiters = leases_->end_waiting(deadline);
    co_await std::move(waiters);
    members_->close();
    *gone_ = true;
    tend_gate_->open();
}

// --- requests
// -------------------------------------------------------------------------------------

awaitable<result<std::vector<Result>>> EtcdBackend::transact(std::vector<Transaction> all,
                                                             boot_clock::time_point deadline,
                                                             RequestInfo& went,
                                                             Members::Length length) {
    std::string body;
    if (all.size() == 1) {
        body = all.front().text();
    } else {
        Transaction outer;
        for (const Transaction& t : all)
            outer.success.push_back(t.nested());
        body = outer.text();
    }
    const std::int64_t newest = newest_;
    auto task = members_->post("kv/txn", std::move(body), deadline, &went.detail, length);
    const Members::Answer answer = co_await std::move(task);
    went.doubt = answer.doubt;
    went.late = answer.doubt && answer.why != make(Error::no_space);
    went.repeated = answer.repeated;
    if (answer.why == make(Error::no_lease)) leases_->forget();
    if (answer.why) co_return answer.why;
    went.revision = revision_of(answer.body);
    compare(newest, went.revision);
    std::vector<Result> results;
    Result whole = read_transaction(answer.body);
    if (all.size() == 1)
        results.push_back(std::move(whole));
    else
        results = std::move(whole.results);
    if (went.revision <= 0 || results.size() != all.size()) {
        went.doubt = went.late = true;
        co_return make(Error::protocol);
    }
    co_return results;
}

awaitable<result<Result>> EtcdBackend::ask(std::string begin, std::string end, std::int64_t limit,
                                           bool keys_only, boot_clock::time_point deadline,
                                           RequestInfo& went) {
    const std::int64_t newest = newest_;
    auto task = members_->post("kv/range", range_alone(begin, end, limit, keys_only), deadline,
                               &went.detail, Members::Length::list);
    const Members::Answer answer = co_await std::move(task);
    if (answer.why) co_return answer.why;
    went.revision = revision_of(answer.body);
    if (went.revision <= 0) co_return make(Error::protocol);
    compare(newest, went.revision);
    co_return read_range(answer.body);
}

void EtcdBackend::compare(std::int64_t newest_before, std::int64_t revision) {
    if (revision >= newest_before && generation_ == members_->generation()) {
        newest_ = std::max(newest_, revision);
        return;
    }
    generation_ = members_->generation();
    newest_ = revision;
    leases_->forget();
    queues_->begin_anew(revision);
}

template <class Item>
awaitable<std::vector<EtcdBackend::Leased>> EtcdBackend::lease_each(
    std::vector<Item*> all, bool (*needs)(const OwnerState&)) {
    std::vector<Leased> out;
    for (const Item* i : all) {
        if (!needs(*std::static_pointer_cast<OwnerState>(i->place))) {
            out.push_back({Lease(), {}});
            continue;
        }
        std::string detail;
        auto leasing = leases_->young(i->ttl + i->lock_delay, i->deadline, &detail);
        const result<Lease> lease = co_await std::move(leasing);
        if (!lease && detail.empty()) detail = lease.error().message();
        out.push_back({lease, std::move(detail)});
    }
    co_return out;
}

template awaitable<std::vector<EtcdBackend::Leased>> EtcdBackend::lease_each(
    std::vector<spi::Attempt*>, bool (*)(const OwnerState&));
template awaitable<std::vector<EtcdBackend::Leased>> EtcdBackend::lease_each(
    std::vector<spi::Held*>, bool (*)(const OwnerState&));

}  // namespace holdfast::etcd
