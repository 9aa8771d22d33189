#include "etcd.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <utility>

namespace holdfast::sim {
namespace {

namespace js = boost::json;

constexpr Nanos request_limit = 7 * second;  // of a member, for what finds no leader
constexpr int unavailable = 14;
constexpr int server_error = 503, missing = 404, bad_request = 400;

js::object error_body(const std::string& why, int code) {
    js::object out;
    out["error"] = why;
    out["message"] = why;
    out["code"] = code;
    return out;
}

std::string chunk(const js::object& result) {
    js::object line;
    line["result"] = result;
    const std::string text = js::serialize(line) + "\n";
    std::array<char, 20> hex{};
    const auto end = std::to_chars(hex.data(), hex.data() + hex.size(), text.size(), 16).ptr;
    return std::string(hex.data(), end) + "\r\n" + text + "\r\n";
}

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
    if (!std::exchange(m.up, false)) return;
    m.drop_sessions();
    std::erase_if(waiting_, [&](const Request& r) { return r.member == i; });
    if (leader_ == i) elect_later();
    kernel_.after(down, [this, i] {
        if (std::exchange(members_[i]->up, true)) return;
        members_[i]->machine.frozen_until = kernel_.now();
        if (leader_ == none) elect_later();
        go_on();
    });
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
        m.machine.frozen_until = m.isolated_until = kernel_.now();
        m.tell_later();
    }
    if (leader_ == none) elect();
    go_on();
}

// --- a member

EtcdMember::EtcdMember(EtcdCluster& c, Kernel& k, std::size_t number)
    : cluster_(c), kernel_(k), number_(number) {
    machine.name = "member" + std::to_string(number);
    machine.local = 1000 * second + k.random().between(0, 1000 * second);
    machine.ppm = k.random().between(-3000, 3000);
}

void EtcdMember::opened(const std::shared_ptr<Connection>& c) {
    sessions_.push_back(std::make_shared<Session>());
    sessions_.back()->connection = c;
}

void EtcdMember::closed(Connection& c) {
    std::erase_if(sessions_, [&](const auto& s) { return s->connection.get() == &c; });
}

void EtcdMember::drop_sessions() {
    for (const auto& s : std::exchange(sessions_, {})) {
        s->ended = true;
        s->connection->server_closes(kernel_.random().chance(500));
    }
}

void EtcdMember::arrived(Connection& c, std::string_view bytes) {
    for (const auto& s : sessions_)
        if (s->connection.get() == &c) {
            s->in += bytes;
            return look_at(s);
        }
}

/// POST /v3/PATH HTTP/1.1, headers with a Content-Length, and as many bytes.
void EtcdMember::look_at(const std::shared_ptr<Session>& s) {
    if (s->busy || s->watches) return;
    const auto head = s->in.find("\r\n\r\n");
    if (head == s->in.npos) return;
    constexpr std::string_view begin = "POST /v3/", length = "Content-Length: ";
    const auto size_at = s->in.find(length);
    if (!s->in.starts_with(begin) || size_at > head)
        throw std::runtime_error("a client sends nonsense: " + s->in);
    const std::size_t size = std::stoul(s->in.substr(size_at + length.size()));
    if (s->in.size() < head + 4 + size) return;
    const std::string path =
        s->in.substr(begin.size(), s->in.find(' ', begin.size()) - begin.size());
    const std::string body = s->in.substr(head + 4, size);
    s->in.erase(0, head + 4 + size);
    s->busy = true;
    kernel_.after(kernel_.random().between(50 * us, 500 * us),
                  [this, s, path, body] { serve(s, path, body); });
}

void EtcdMember::serve(const std::shared_ptr<Session>& s, const std::string& path,
                       const std::string& body) {
    const bool there = std::find(sessions_.begin(), sessions_.end(), s) != sessions_.end();
    if (s->ended || (!there && kernel_.random().chance(500))) return;
    if (kernel_.now() < machine.frozen_until)
        return kernel_.at(machine.frozen_until, [this, s, path, body] { serve(s, path, body); });
    js::object asked = js::parse(body).as_object();
    if (path == "watch") {
        // From what this member knows, without the leader.
        watch(*s, asked);
        return;
    }
    // Whoever asked may be gone: it is done all the same.
    cluster_.propose(number_, [this, s, path, asked](bool led) {
        if (led) return execute(s, path, asked);
        answer(s, server_error,
               js::serialize(error_body("etcdserver: request timed out", unavailable)));
    });
}

void EtcdMember::execute(const std::shared_ptr<Session>& s, const std::string& path,
                         const js::object& asked) {
    const std::int64_t before = cluster_.store_.revision;
    unsigned status = 200;
    js::object out;
    try {
        out = done(path, asked);
    } catch (const EtcdError& e) {
        status = e.code == 5 ? missing : bad_request;
        out = error_body(e.what(), e.code);
    }
    if (cluster_.store_.revision != before) cluster_.changed();
    const std::string text = js::serialize(out);
    if (kernel_.tracing)
        kernel_.trace(machine.name, s->connection->route().process.name + ": " + path + " " +
                                        js::serialize(asked).substr(0, 300) + " -> " +
                                        text.substr(0, 300));
    answer(s, status, text);
}

js::object EtcdMember::done(const std::string& path, const js::object& asked) {
    EtcdStore& store = cluster_.store_;
    EtcdMember& leader = *cluster_.members_[cluster_.leader_];
    const Nanos now = leader.machine.clock(kernel_.now());
    const std::int64_t id = number_in(asked, "ID");
    if (path == "kv/txn") return store.transaction(asked);
    if (path == "kv/range") return store.range(asked);
    if (path == "cluster/member/list") {
        js::object out;
        out["header"] = store.header();
        out["members"] = js::array(cluster_.size(), js::object{});
        return out;
    }
    if (path == "lease/grant") {
        js::object out = store.grant(asked);
        const std::int64_t seconds = number_in(out, "TTL");
        cluster_.ends_[number_in(out, "ID")] =
            now + std::max(seconds, leader.shortest_lease) * second;
        out["TTL"] = std::to_string(std::max(seconds, shortest_lease));
        return out;
    }
    if (path == "lease/keepalive") {
        js::object out = store.keep_alive(asked);
        const EtcdStore::Lease* lease = store.lease(id);
        // One whose time is over is not kept, though it has not been revoked yet.
        if (lease != nullptr && cluster_.ends_[id] >= now)
            cluster_.ends_[id] = now + std::max(lease->seconds, leader.shortest_lease) * second;
        else
            out["result"].as_object().erase("TTL");
        return out;
    }
    if (path == "lease/revoke") {
        js::object out = store.revoke(asked);
        cluster_.ends_.erase(id);
        return out;
    }
    if (path == "lease/timetolive") {
        const bool known = store.lease(id) != nullptr;
        return store.time_to_live(asked, known ? (cluster_.ends_[id] - now) / second : 0);
    }
    throw std::runtime_error("etcd: no path " + path);
}

void EtcdMember::answer(const std::shared_ptr<Session>& s, unsigned status,
                        const std::string& body) {
    s->busy = false;
    if (std::find(sessions_.begin(), sessions_.end(), s) == sessions_.end()) return;
    s->connection->reply("HTTP/1.1 " + std::to_string(status) +
                         " X\r\nContent-Type: application/json\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\n\r\n" + body);
    look_at(s);
}

void EtcdMember::watch(Session& s, const js::object& asked) {
    const js::object& wanted = asked.at("create_request").as_object();
    s.watches = true;
    s.begin = bytes_in(wanted, "key");
    s.end = bytes_in(wanted, "range_end");
    s.next = number_in(wanted, "start_revision");
    js::object created;
    created["header"] = cluster_.store_.header();
    created["created"] = true;
    s.connection->reply(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n" +
        chunk(created));
    tell_later();
}

/// A member knows of a change a little later, or when it hears the others again.
void EtcdMember::tell_later() {
    if (std::exchange(telling_, true)) return;
    kernel_.after(
        kernel_.random().between(20 * us, kernel_.random().chance(50) ? cluster_.slowest : 2 * ms),
        [this] {
            telling_ = false;
            const Nanos now = kernel_.now();
            if (!up || now < machine.frozen_until || now < isolated_until) return;
            for (const auto& s : std::vector(sessions_))
                if (s->watches) tell(*s);
        });
}

void EtcdMember::tell(Session& s) {
    const EtcdStore& store = cluster_.store();
    js::array events = store.events(s.begin, s.end, s.next);
    s.next = std::max(s.next, store.revision + 1);
    if (events.empty()) return;
    js::object message;
    message["header"] = store.header();
    message["events"] = std::move(events);
    if (kernel_.tracing)
        kernel_.trace(machine.name, "tells " + s.connection->route().process.name + ": " +
                                        js::serialize(message).substr(0, 300));
    s.connection->reply(chunk(message));
}

}  // namespace holdfast::sim
