// What operators ask: holders and waiters, names that are held, break, and what this cluster
// promises.
#include <algorithm>
#include <set>

#include "backend.hpp"
#include "errors.hpp"
#include "holdfast/spi/owner.hpp"
#include "keys.hpp"

namespace holdfast::etcd {
namespace {

Holder shown(const KeyValue& kv) {
    Holder h;
    const auto entry = read_entry(kv.value);
    // Other clients keep nothing but their lease, in the key.
    h.owner = entry ? entry->owner : kv.key.substr(kv.key.rfind('/') + 1);
    const spi::Owner o = spi::parse_owner(h.owner);
    h.host = o.host;
    h.pid = o.pid;
    h.note = o.note;
    h.foreign = !entry || !o.ours;
    h.revoked = entry && entry->revoked;
    return h;
}

bool flag(const boost::json::object& o, std::string_view name) {
    const auto* v = o.if_contains(name);
    return v != nullptr && v->is_bool() && v->get_bool();
}

}  // namespace

awaitable<std::optional<milliseconds>> EtcdBackend::left_of(std::int64_t lease,
                                                            boot_clock::time_point deadline) {
    std::string detail;
    std::string body = "{\"ID\":\"" + std::to_string(lease) + "\"}";
    auto task = members_->post("lease/timetolive", std::move(body), deadline, &detail);
    const Members::Answer answer = co_await std::move(task);
    if (answer.why) co_return std::nullopt;
    const std::int64_t seconds = number(answer.body, "TTL");
    co_return milliseconds(std::max<std::int64_t>(seconds, 0) * 1000);
}

awaitable<result<std::vector<KeyValue>>> EtcdBackend::standing(std::string_view name,
                                                               boot_clock::time_point deadline,
                                                               std::string& detail) {
    const std::string line = line_of(shared_->options, name);
    Went went;
    auto task = ask(line, after(line), 0, false, deadline, went);
    const auto found = co_await std::move(task);
    detail = went.detail;
    if (!found) co_return found.error();
    std::vector<KeyValue> all = found->found;
    std::sort(all.begin(), all.end(),
              [](const KeyValue& a, const KeyValue& b) { return a.created < b.created; });
    co_return all;
}

awaitable<result<Inspection>> EtcdBackend::inspect(std::string_view name,
                                                   boot_clock::time_point deadline,
                                                   std::string& detail) {
    auto task = standing(name, deadline, detail);
    const auto all = co_await std::move(task);
    if (!all) co_return all.error();
    Inspection out;
    out.name = name;
    for (const KeyValue& kv : *all) {
        Holder h = shown(kv);
        if (&kv != &all->front()) {
            out.waiters.push_back(std::move(h));
            continue;
        }
        h.token.value = static_cast<std::uint64_t>(kv.created);
        out.last_token = h.token;
        auto asking = left_of(kv.lease, deadline);
        h.ttl_left = co_await std::move(asking);
        out.holders.push_back(std::move(h));
    }
    co_return out;
}

awaitable<result<std::vector<std::string>>> EtcdBackend::list(std::string_view prefix,
                                                              std::size_t limit,
                                                              boot_clock::time_point deadline,
                                                              std::string& detail) {
    constexpr std::int64_t page = 10'000;
    const std::string from = names_from(shared_->options, prefix);
    std::string begin = from;
    std::set<std::string> names;
    for (bool more = true; more && names.size() < limit;) {
        Went went;
        auto task = ask(begin, after(from), page, true, deadline, went);
        const auto found = co_await std::move(task);
        detail = went.detail;
        if (!found) co_return found.error();
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

awaitable<result<std::vector<Broken>>> EtcdBackend::break_lock(std::string_view name,
                                                               const BreakOptions& options,
                                                               boot_clock::time_point deadline,
                                                               std::string& detail) {
    auto task = standing(name, deadline, detail);
    const auto all = co_await std::move(task);
    if (!all) co_return all.error();
    if (all->empty()) co_return make_error_code(errc::not_held);
    const KeyValue holder = all->front();
    if (options.if_token && options.if_token->value != static_cast<std::uint64_t>(holder.created)) {
        detail = "it is held with another token";
        co_return make_error_code(errc::not_held);
    }
    Broken out;
    out.holder = shown(holder);
    out.holder.token.value = static_cast<std::uint64_t>(holder.created);
    if (out.holder.foreign && !options.now) {
        detail =
            "a client of another library holds it and would not notice the revocation; to delete "
            "its key, break it with --now";
        co_return make_error_code(errc::not_supported);
    }
    auto asking = left_of(holder.lease, deadline);
    const auto left = co_await std::move(asking);
    if (!left) co_return make(Error::no_answer);
    Transaction t;
    t.compare = {was_created(holder.key, holder.created)};
    if (options.now)
        t.success = {deletion(holder.key)};
    else
        t.success = {put_value(holder.key, write_entry(out.holder.owner, true))};
    std::vector<Transaction> one{std::move(t)};
    Went went;
    auto breaking = transact(std::move(one), deadline, went);
    const auto done = co_await std::move(breaking);
    detail = went.detail;
    if (!done) co_return done.error();
    if (!done->front().succeeded) co_return make_error_code(errc::not_held);
    out.holder.revoked = true;
    out.holder.ttl_left = *left;
    if (options.now) co_return std::vector<Broken>(1, out);
    // A renewal may have come between: the key says to which lease it is attached now.
    Went last;
    auto rereading = ask(holder.key, {}, 0, false, deadline, last);
    const auto now_there = co_await std::move(rereading);
    if (!now_there) co_return now_there.error();
    out.free_in = milliseconds(0);
    if (!now_there->found.empty()) {
        auto asking_again = left_of(now_there->found.front().lease, deadline);
        const auto rest = co_await std::move(asking_again);
        if (!rest) co_return make(Error::no_answer);
        out.free_in = *rest + milliseconds(1000);  // it is told in whole seconds
    }
    co_return std::vector<Broken>(1, out);
}

awaitable<result<Capabilities>> EtcdBackend::probe(boot_clock::time_point deadline,
                                                   std::string& detail) {
    auto task = members_->post("cluster/member/list", "{}", deadline, &detail);
    const Members::Answer members = co_await std::move(task);
    if (members.why) co_return members.why;
    int voters = 0;
    if (const auto* all = array(members.body, "members"))
        for (const auto& m : *all)
            if (m.is_object() && !flag(m.get_object(), "isLearner")) ++voters;
    auto alarming = members_->post("maintenance/alarm", "{\"action\":\"GET\"}", deadline, &detail);
    const Members::Answer alarms = co_await std::move(alarming);
    if (!alarms.why)
        if (const auto* all = array(alarms.body, "alarms"); all != nullptr && !all->empty())
            shared_->events->warn(
                shared_->options.display +
                ": an alarm is raised (etcdctl alarm list): writes may be refused");
    Capabilities c = capabilities_;
    c.safety = voters >= 3 ? SafetyClass::a : SafetyClass::b;
    c.set(Capability::survives_failover, voters >= 3);
    co_return c;
}

}  // namespace holdfast::etcd
