// What these members are, and what follows for their locks: `holdfast doctor`, probe and `require`.
#include <array>
#include <charconv>
#include <set>

#include "backend.hpp"
#include "holdfast/spi/common_checks.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "rights.hpp"

namespace holdfast::etcd {
namespace {

using Found = std::optional<spi::Judgement>;

Found judge_answers(const spi::Facts& f) {
    if (f.has("silent")) return spi::slow(std::string(f.text("silent")));
    return spi::sound("etcd " + std::string(f.text("version")));
}

/// What is before these loses what it has confirmed, in a crash of a single member (etcd issue
/// 14370; 3.4.21, 3.5.5), or lets members' data part, after a crash under load (announcement of
/// March 2022, 3.5.0 to 3.5.2) or during a defragmentation (3.5.0 to 3.5.5).
Found judge_version(const spi::Facts& f) {
    const auto version = f.text("version");
    if (version.empty()) return {};
    const std::string words = "etcd " + std::string(version);
    std::array<int, 3> is{};
    const char *at = version.data(), *const end = at + version.size();
    for (int& part : is) {
        const auto read = std::from_chars(at, end, part);
        if (read.ec != std::errc()) return spi::sound(words);  // of its own kind
        at = read.ptr == end ? end : read.ptr + 1;
    }
    const bool bad =
        is < std::array{3, 4, 21} || (is >= std::array{3, 5, 0} && is < std::array{3, 5, 6});
    return bad ? spi::unsafe(words) : spi::sound(words);
}

Found judge_leader(const spi::Facts& f) {
    if (!f.has("version")) return {};
    return f.text("leader").empty() || f.text("leader") == "0" ? spi::slow("it knows no leader")
                                                               : spi::sound();
}

Found judge_learner(const spi::Facts& f) {
    if (!f.has("version")) return {};
    return f.text("learner") == "1" ? spi::slow("it is a learner") : spi::sound();
}

Found judge_size(const spi::Facts& f) {
    const auto size = f.number("size");
    if (!size) return {};
    const std::string words = "its database has " + std::to_string(*size >> 20) + " MiB";
    return *size > (1600LL << 20) ? spi::slow(words) : spi::sound(words);
}

Found judge_fragments(const spi::Facts& f) {
    const auto size = f.number("size"), used = f.number("size_in_use");
    if (!size || !used) return {};
    const std::string words = std::to_string(*used >> 20) + " of the " +
                              std::to_string(*size >> 20) + " MiB of its database are in use";
    return *size > (100LL << 20) && *used < *size / 2 ? spi::slow(words) : spi::sound(words);
}

Found judge_lag(const spi::Facts& f) {
    const auto index = f.number("index"), applied = f.number("applied");
    if (!index || !applied) return {};
    const std::string words = "it has " + std::to_string(*index - *applied) + " entries to apply";
    return *index - *applied > 1000 ? spi::slow(words) : spi::sound(words);
}

constexpr spi::Check member_checks[] = {
    {"etcd.answers", "one failure less is tolerated", "look at that member and its network",
     judge_answers},
    {"etcd.version", "after a crash a grant can be forgotten, or the members disagree on it",
     "update to 3.4.21, 3.5.6 or later, and check the members' data (etcdctl endpoint hashkv)",
     judge_version},
    {"etcd.leader", "no lock is acquired or renewed there",
     "look at the other members and the network between them", judge_leader},
    {"etcd.learner", "it serves no locks", "name the voting members in the URL", judge_learner},
    {"etcd.size", "beyond the quota, 2 GiB by default, every lock is refused",
     "compact and defragment (etcdctl defrag), or raise --quota-backend-bytes", judge_size},
    {"etcd.fragments", "the quota counts the whole file", "etcdctl defrag, one member at a time",
     judge_fragments},
    {"etcd.lag", "requests wait for it", "look at its disk and processor", judge_lag},
    {"etcd.round_trip", spi::round_trip_consequence, spi::round_trip_remedy, spi::judge_round_trip},
};

Found judge_members(const spi::Facts& f) {
    const auto voters = f.number("voters");
    if (!voters) return spi::unknown("the members could not be asked for");
    const std::string words =
        std::to_string(*voters) + (*voters == 1 ? " voting member" : " voting members");
    return *voters % 2 == 0 || *voters == 1 ? spi::slow(words) : spi::sound(words);
}

Found judge_listed(const spi::Facts& f) {
    const auto members = f.number("voters"), listed = f.number("listed");
    if (!members || !listed) return {};
    const std::string words =
        "the URL names " + std::to_string(*listed) + " of " + std::to_string(*members) + " members";
    return *listed == *members ? spi::sound(words) : spi::slow(words);
}

Found judge_cluster(const spi::Facts& f) {
    const auto clusters = f.number("clusters");
    if (!clusters) return {};
    return *clusters > 1
               ? spi::unsafe("its hosts belong to " + std::to_string(*clusters) + " clusters")
               : spi::sound();
}

Found judge_hosts(const spi::Facts& f) {
    const auto shared = f.text("shared_host");
    return shared.empty() ? spi::sound()
                          : spi::slow("several members are on " + std::string(shared));
}

Found judge_alarm(const spi::Facts& f) {
    if (!f.has("alarms")) return spi::unknown("alarms could not be asked for");
    const auto alarms = f.text("alarms");
    if (alarms.empty()) return spi::sound();
    std::string words = "an alarm is raised: " + std::string(alarms);
    return alarms.find("CORRUPT") != alarms.npos ? spi::unsafe(std::move(words))
                                                 : spi::slow(std::move(words));
}

constexpr spi::Check cluster_checks[] = {
    {"etcd.members", "the failure of one stops every lock, as with one member less",
     "run three or five", judge_members},
    {"etcd.cluster", "each cluster grants the same lock once", "name the members of one cluster",
     judge_cluster},
    {"etcd.listed",
     "a member that is not named is not asked when the others fail; a host too many is one of them "
     "twice, or no member",
     "name each member once in the URL", judge_listed},
    {"etcd.hosts", "one machine's failure takes several votes",
     "give each member a machine of its own", judge_hosts},
    {"etcd.alarm", "writes may be refused (NOSPACE), or members disagree (CORRUPT)",
     "etcdctl alarm list; make room, then etcdctl alarm disarm", judge_alarm},
    {"etcd.rights", spi::rights_consequence,
     "etcdctl role grant-permission ROLE readwrite --prefix=true PREFIX", spi::judge_rights},
};

/// "10.0.0.1" of "http://10.0.0.1:2379".
std::string host_of(std::string_view url) {
    const auto slashes = url.find("//");
    if (slashes != url.npos) url.remove_prefix(slashes + 2);
    return std::string(url.substr(0, url.rfind(':')));
}

void note_members(spi::Facts& cluster, const rpc::MemberListResponse& list) {
    long long voters = 0;
    std::set<std::string> hosts;
    for (const rpc::Member& m : list.members()) {
        if (m.is_learner()) continue;
        ++voters;
        if (m.client_urls_size() != 0) spi::note_host(cluster, hosts, host_of(m.client_urls(0)));
    }
    cluster.set("voters", voters);
}

const char* name_of(rpc::AlarmType alarm) {
    return alarm == rpc::NOSPACE ? "NOSPACE" : alarm == rpc::CORRUPT ? "CORRUPT" : "NONE";
}

}  // namespace

std::vector<spi::Check> all_checks() {
    std::vector<spi::Check> all(std::begin(member_checks), std::end(member_checks));
    all.insert(all.end(), std::begin(cluster_checks), std::end(cluster_checks));
    return all;
}

awaitable<spi::Facts> EtcdBackend::member_facts(spi::Endpoint host,
                                                boot_clock::time_point deadline) {
    spi::Facts facts;
    facts.where = spi::text_of(host);
    const auto alone = std::make_shared<Members>(std::make_shared<Shared>(*shared_, host));
    const rpc::StatusRequest nothing;
    rpc::StatusResponse s;
    // The first request connects as well.
    auto meeting = alone->post(method::status, nothing, s, deadline);
    Members::Answer status = co_await std::move(meeting);
    const auto sent = boot_clock::now();
    if (!status) {
        auto asking = alone->post(method::status, nothing, s, deadline);
        status = co_await std::move(asking);
    }
    const auto took = boot_clock::now() - sent;
    alone->close();
    if (status) {
        facts.set("silent", status.text());
        co_return facts;
    }
    const auto number = [](auto n) { return static_cast<long long>(n); };
    spi::note_round_trip(facts, took, shared_->options.ttl);
    facts.set("cluster", std::to_string(s.header().cluster_id()));
    facts.set("version", s.version());
    facts.set("leader", std::to_string(s.leader()));
    facts.set("learner", s.is_learner() ? 1 : 0);
    facts.set("size", number(s.db_size()));
    if (s.has_db_size_in_use()) facts.set("size_in_use", number(s.db_size_in_use()));
    facts.set("index", number(s.raft_index()));
    facts.set("applied", number(s.raft_applied_index()));
    co_return facts;
}

awaitable<std::optional<std::string>> EtcdBackend::missing_rights(boot_clock::time_point deadline) {
    const std::string& user = shared_->options.user;
    if (user.empty()) co_return std::nullopt;
    rpc::AuthUserGetRequest who;
    who.set_name(user);
    rpc::AuthUserGetResponse about;
    auto asking = members_->post(method::user_get, who, about, deadline);
    const Members::Answer answer = co_await std::move(asking);
    if (answer.why) co_return std::nullopt;
    Rights rights;
    for (const std::string& role : about.roles()) {
        if (role == "root") co_return std::string();
        rpc::AuthRoleGetRequest which;
        which.set_role(role);
        rpc::AuthRoleGetResponse permits;
        auto reading = members_->post(method::role_get, which, permits, deadline);
        const Members::Answer read = co_await std::move(reading);
        if (read.why) co_return std::nullopt;
        rights.add(permits);
    }
    co_return rights.missing(shared_->options.root);
}

awaitable<spi::Answer<Examination>> EtcdBackend::examine(boot_clock::time_point deadline) {
    spi::Facts cluster;
    const rpc::MemberListRequest nothing;
    rpc::MemberListResponse members;
    auto task = members_->post(method::member_list, nothing, members, deadline);
    Members::Answer listed = co_await std::move(task);
    if (listed) co_return spi::Failure(std::move(listed));
    note_members(cluster, members);
    // What the user may not read it may not lock either.
    RequestInfo went;
    auto reading =
        ask(shared_->options.root, after(shared_->options.root), 1, true, deadline, went);
    const auto readable = co_await std::move(reading);
    if (!readable) co_return spi::Failure(readable.error(), went.detail);
    const rpc::AlarmRequest get;
    rpc::AlarmResponse alarms;
    auto alarming = members_->post(method::alarm, get, alarms, deadline);
    const Members::Answer told = co_await std::move(alarming);
    if (!told.why) {
        std::string raised;
        for (const rpc::AlarmMember& a : alarms.alarms())
            raised += (raised.empty() ? "" : ", ") + std::string(name_of(a.alarm()));
        cluster.set("alarms", raised);
    }
    auto asking_rights = missing_rights(deadline);
    if (const auto missing = co_await std::move(asking_rights)) cluster.set("refused", *missing);
    Examination found;
    const auto& hosts = shared_->options.hosts;
    cluster.set("listed", static_cast<long long>(hosts.size()));
    std::set<std::string, std::less<>> clusters;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        // A member that does not answer leaves time for the others.
        const auto now = boot_clock::now();
        const auto share = (deadline - now) / static_cast<long>(hosts.size() - i + 1);
        auto asking = member_facts(hosts[i], now + share);
        const spi::Facts facts = co_await std::move(asking);
        if (!facts.text("cluster").empty()) clusters.emplace(facts.text("cluster"));
        spi::judge(member_checks, facts, found.findings);
    }
    if (!clusters.empty()) cluster.set("clusters", static_cast<long long>(clusters.size()));
    spi::judge(cluster_checks, cluster, found.findings);
    const bool ensemble = cluster.number("voters").value_or(0) >= 3;
    found.capabilities = capabilities_;
    found.capabilities.safety = ensemble ? SafetyClass::a : SafetyClass::b;
    found.capabilities.set(Capability::survives_failover, ensemble);
    co_return found;
}

}  // namespace holdfast::etcd
