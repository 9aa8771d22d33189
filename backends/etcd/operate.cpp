// What operators ask: holders and waiters, names that are held, break.
#include <algorithm>
#include <deque>
#include <set>

#include "backend.hpp"
#include "errors.hpp"
#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/holder.hpp"
#include "keys.hpp"

namespace holdfast::etcd {

using namespace std::chrono_literals;

namespace {

spi::Survey::Member shown(const KeyValue& kv) {
    const auto entry = read_entry(kv.value);
    // Other clients keep nothing but their lease, in the key, and candidates their value.
    spi::Survey::Member m{
        spi::holder_of(entry ? std::string(entry->owner) : kv.key.substr(kv.key.rfind('/') + 1)),
        units_in(kv.value)};
    Holder& h = m.holder;
    h.foreign = h.foreign || !entry;
    if (!m.units.permits()) h.token.value = static_cast<std::uint64_t>(kv.created);
    if (!entry) {
        h.note = kv.value;
        return m;
    }
    h.revoked = entry->flag == Entry::Flag::revoked;
    h.asked = entry->flag == Entry::Flag::asked;
    return m;
}

bool is_meant(const KeyValue& kv, const HolderFilter& which) {
    const Holder h = shown(kv).holder;
    return spi::is_meant(which, h.owner, h.token);
}

constexpr std::size_t most_told = 32;  // in one request

/// Leaves a word in the key of this holder, or deletes the key.
class Telling final : public Operation {
public:
    Telling(const KeyValue& kv, spi::Tell what, boot_clock::time_point until)
        : Operation(std::make_shared<OwnerState>(), until), holder(kv), what_(what) {
        place->line = kv.key.substr(0, kv.key.rfind('/') + 1);
        place->key = kv.key;
        place->units = units_in(kv.value);
        want(what == spi::Tell::gone ? Step::leave : Step::tell);
    }
    void request(Transaction t) override {
        t.if_created(holder.key, holder.created);
        if (what_ == spi::Tell::gone) return t.then().remove(holder.key);
        // Not over units that have become fewer.
        t.if_value(holder.key, holder.value);
        Entry changed = *read_entry(holder.value);
        changed.flag = what_ == spi::Tell::asked ? Entry::Flag::asked : Entry::Flag::revoked;
        t.then().put_value(holder.key, write_entry(changed));
    }
    void answered(const Result& r, const RequestInfo&) override {
        told = r.succeeded;
        want(Step::over);
    }
    void missing(const error_code& ec, const RequestInfo& went) override {
        failed = {ec, went.detail};
        want(Step::over);
    }
    const KeyValue holder;
    bool told = false;
    spi::Failure failed;

private:
    const spi::Tell what_;
};

void sort_by_creation(std::vector<KeyValue>& all) {
    std::sort(all.begin(), all.end(),
              [](const KeyValue& a, const KeyValue& b) { return a.created < b.created; });
}

bool is_one_of(const std::vector<KeyValue>& all, const KeyValue& kv) {
    return std::any_of(all.begin(), all.end(),
                       [&](const KeyValue& one) { return one.created == kv.created; });
}

}  // namespace

awaitable<std::map<std::int64_t, std::optional<milliseconds>>> EtcdBackend::left_of(
    std::vector<KeyValue> keys, boot_clock::time_point deadline) {
    std::map<std::int64_t, std::optional<milliseconds>> out;
    for (const KeyValue& kv : keys) {
        if (out.contains(kv.lease)) continue;
        std::optional<milliseconds>& left = out[kv.lease];
        if (kv.lease == 0 || boot_clock::now() >= deadline) continue;  // 0: it does not end
        rpc::LeaseTimeToLiveRequest request;
        request.set_id(kv.lease);
        rpc::LeaseTimeToLiveResponse reply;
        auto task = members_->post(method::lease_time_to_live, request, reply, deadline);
        const Members::Answer answer = co_await std::move(task);
        if (answer.why) continue;
        left = std::max(spi::bounded_length<std::chrono::seconds>(reply.ttl()),
                        std::chrono::seconds(0));
    }
    co_return out;
}

awaitable<spi::Answer<EtcdBackend::QueueSnapshot>> EtcdBackend::standing(
    std::string_view name, boot_clock::time_point deadline) {
    const std::string line = line_of(shared_->options, name);
    Messages messages;
    Requests both = Transaction(messages.request).then();
    both.range(Keys::below(line));
    both.range(name_key(line));
    RequestInfo went;
    auto task = transact(messages, deadline, went, Members::Length::list);
    const auto found = co_await std::move(task);
    if (!found) co_return spi::Failure(found.error(), went.detail);
    const std::vector<Result>& there = found->results;
    if (there.size() != 2) co_return make(Error::protocol);
    queues_->listed(line, went.revision);
    QueueSnapshot out;
    out.all = there.front().found;
    const std::vector<KeyValue>& alone = there.back().found;
    if (out.all.empty() && !alone.empty() && alone.front().value != permits_marker)
        co_return make(Error::other_kind);
    sort_by_creation(out.all);
    const UnitQueue row(out.all);
    while (out.holders < out.all.size() && row.fits(out.all[out.holders].created))
        ++out.holders;
    co_return out;
}

awaitable<spi::Answer<spi::Survey>> EtcdBackend::survey(std::string_view name,
                                                        boot_clock::time_point deadline) {
    auto task = standing(name, deadline);
    const auto found = co_await std::move(task);
    if (!found) co_return found.error();
    const auto first_waiter = found->all.begin() + static_cast<std::ptrdiff_t>(found->holders);
    std::vector<KeyValue> holders(found->all.begin(), first_waiter);
    auto asking = left_of(holders, deadline);
    const auto left = co_await std::move(asking);
    spi::Survey out;
    for (const KeyValue& kv : holders) {
        spi::Survey::Member m = shown(kv);
        Holder& h = m.holder;
        h.ttl_left = left.at(kv.lease);
        const auto entry = read_entry(kv.value);
        const milliseconds delay = entry ? entry->lock_delay : milliseconds::zero();
        // It is told in whole seconds, and what is not told is less than one.
        if (h.ttl_left && delay > milliseconds::zero() && *h.ttl_left + 1s <= delay) {
            out.closed_for = std::max(out.closed_for.value_or(milliseconds::zero()), *h.ttl_left);
            out.last_token = std::max(out.last_token, h.token);
            out.units = m.units;
            continue;
        }
        if (h.ttl_left) h.ttl_left = std::max(milliseconds::zero(), *h.ttl_left - delay);
        out.holders.push_back(std::move(m));
    }
    for (auto waiter = first_waiter; waiter != found->all.end(); ++waiter)
        out.waiters.push_back(shown(*waiter));
    co_return out;
}

awaitable<spi::Answer<std::vector<std::string>>> EtcdBackend::list(
    std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) {
    constexpr std::int64_t page = 3000;  // the longest names fit into an answer
    const std::string from = names_from(shared_->options, prefix);
    std::string begin = from;
    std::set<std::string> names;
    for (bool more = true; more && names.size() < limit;) {
        RequestInfo went;
        auto task = ask(begin, after(from), page, true, deadline, went);
        const auto found = co_await std::move(task);
        if (!found) co_return spi::Failure(found.error(), went.detail);
        for (const KeyValue& kv : found->found) {
            begin = kv.key + '\0';
            if (auto name = name_of(shared_->options, kv.key)) names.insert(std::move(*name));
        }
        more = found->more && !found->found.empty();
    }
    std::vector<std::string> out(names.begin(), names.end());
    if (out.size() > limit) out.resize(limit);
    co_return out;
}

awaitable<spi::Answer<std::vector<KeyValue>>> EtcdBackend::reach(std::string_view name,
                                                                 HolderFilter which, spi::Tell what,
                                                                 boot_clock::time_point deadline) {
    constexpr int most_rounds = 5;
    std::vector<KeyValue> told;
    std::optional<std::int64_t> last;  // those behind it come to hold it by what is done here
    for (int round = 0; round < most_rounds; ++round) {
        auto task = standing(name, deadline);
        const auto found = co_await std::move(task);
        if (!found) co_return found.error();
        if (!last) last = found->holders == 0 ? 0 : found->all[found->holders - 1].created;
        std::deque<Telling> telling;
        Operations open;
        for (std::size_t i = 0; i < found->holders && open.size() < most_told; ++i) {
            const KeyValue& kv = found->all[i];
            if (kv.created > *last || !is_meant(kv, which) || is_one_of(told, kv)) continue;
            if (what != spi::Tell::gone && shown(kv).holder.foreign) {
                co_return spi::Failure(errc::not_supported, spi::foreign_holder(what, "key"));
            }
            // There is nothing to add for a holder that is asked already, or has to stop in any
            // case.
            if (what == spi::Tell::asked && read_entry(kv.value)->flag != Entry::Flag::none)
                told.push_back(kv);
            else
                open.push_back(&telling.emplace_back(kv, what, deadline));
        }
        if (open.empty()) {
            if (found->holders != 0 && which.if_token && told.empty())
                co_return spi::Failure(errc::not_held, "it is held with another token");
            break;
        }
        auto driving = drive(open);
        co_await std::move(driving);
        const std::size_t before = told.size();
        for (const Telling& t : telling) {
            if (t.failed) co_return t.failed;
            if (t.told) told.push_back(t.holder);
        }
        if (told.size() != before) round = -1;  // there may be more of them
    }
    if (told.empty()) co_return make_error_code(errc::not_held);
    sort_by_creation(told);
    co_return told;
}

awaitable<spi::Answer<spi::Survey>> EtcdBackend::tell(std::string_view name,
                                                      const HolderFilter& which, spi::Tell what,
                                                      boot_clock::time_point deadline) {
    auto task = reach(name, which, what, deadline);
    const auto told = co_await std::move(task);
    if (!told) co_return told.error();
    spi::Survey out;
    for (const KeyValue& kv : *told)
        out.holders.push_back(shown(kv));
    if (what == spi::Tell::asked) co_return out;
    // A renewal may have come between: the key says to which lease it is attached now.
    std::vector<KeyValue> there = *told;
    if (what == spi::Tell::revoked) {
        auto asking = standing(name, deadline);
        const auto found = co_await std::move(asking);
        if (!found) co_return found.error();
        there.clear();
        for (const KeyValue& kv : found->all)
            if (is_one_of(*told, kv)) there.push_back(kv);
    }
    auto asking = left_of(there, deadline);
    const auto left = co_await std::move(asking);
    for (std::size_t i = 0; i < told->size(); ++i) {
        spi::Survey::Member& m = out.holders[i];
        m.holder.ttl_left = milliseconds::zero();
        const auto same = [&](const KeyValue& t) { return t.created == (*told)[i].created; };
        const auto now_there = std::find_if(there.begin(), there.end(), same);
        if (now_there == there.end()) continue;
        m.holder.ttl_left = left.at(now_there->lease);
        if (what == spi::Tell::gone) continue;
        if (!m.holder.ttl_left) co_return make(Error::no_answer);
        m.free_in = *m.holder.ttl_left + 1s;  // it is told in whole seconds
    }
    co_return out;
}

awaitable<spi::Answer<std::string>> EtcdBackend::note(std::string_view name,
                                                      std::optional<std::string> text,
                                                      boot_clock::time_point deadline) {
    const std::string key = record_of(shared_->options, name);
    RequestInfo went;
    if (!text) {
        auto asking = ask(key, key + '\0', 1, false, deadline, went);
        const auto found = co_await std::move(asking);
        if (!found) co_return spi::Failure(found.error(), went.detail);
        co_return found->found.empty() ? std::string() : found->found.front().value;
    }
    auto leasing = leases_->young(std::chrono::hours(24), deadline);
    const auto lease = co_await std::move(leasing);
    if (!lease) co_return lease.error();
    Messages messages;
    Transaction(messages.request).then().put(key, *text, lease->id);
    auto task = transact(messages, deadline, went);
    const auto done = co_await std::move(task);
    if (!done) co_return spi::Failure(done.error(), went.detail);
    co_return std::move(*text);
}

}  // namespace holdfast::etcd
