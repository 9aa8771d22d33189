#include "etcd_member.hpp"

#include <algorithm>
#include <deque>
#include <holdfast/lab/grpc_server.hpp>
#include <holdfast/lab/protobuf_text.hpp>
#include <set>
#include <utility>

#include "etcd.hpp"

namespace holdfast::sim {
namespace {

// Codes of gRPC.
constexpr int deadline_exceeded = 4, unavailable = 14;
constexpr std::size_t longest_trace = 300;

}  // namespace

struct EtcdMember::Watch {
    std::string begin, end;
    std::int64_t next = 0;  ///< revision that it is told next
};

/// The server's side of a call.
struct EtcdMember::Call {
    std::string path;
    std::deque<std::string> messages;  ///< the first one is served, if it is busy
    bool busy = false, last = false;
    std::map<std::int64_t, Watch> watches;
    std::int64_t next_watch = 0;
};

/// One connection.
struct EtcdMember::Session final : lab::GrpcServer::Listener,
                                   std::enable_shared_from_this<Session> {
    Session(EtcdMember& m, std::shared_ptr<Connection> c)
        : member(m), connection(std::move(c)), http(*this) {}

    void called(std::int32_t id, const lab::GrpcServer::Request& r) override {
        calls[id].path = r.path;
        if (r.timeout)
            member.kernel_.after(r.timeout->count(), [m = &member, self = shared_from_this(), id] {
                m->expire(self, id);
            });
    }
    void message(std::int32_t id, const lab::GrpcServer::Request&, std::string bytes) override {
        const auto at = calls.find(id);
        if (at == calls.end()) return;  // its time is over
        at->second.messages.push_back(std::move(bytes));
        if (!at->second.busy) member.go_on(*this, id);
    }
    void last(std::int32_t id) override {
        if (const auto at = calls.find(id); at != calls.end()) at->second.last = true;
    }
    void cancelled(std::int32_t id) override { calls.erase(id); }

    EtcdMember& member;
    const std::shared_ptr<Connection> connection;
    std::string in;  ///< what has arrived while the machine stands still
    bool ended = false;
    std::map<std::int32_t, Call> calls;
    lab::GrpcServer http;
};

EtcdMember::EtcdMember(EtcdCluster& c, Kernel& k, std::size_t number)
    : cluster_(c), kernel_(k), number_(number) {
    machine.name = "member" + std::to_string(number);
    machine.local = 1000 * second + k.random().between(0, 1000 * second);
    machine.ppm = k.random().between(-3000, 3000);
}
EtcdMember::~EtcdMember() = default;

bool EtcdMember::stands() const {
    return kernel_.now() < machine.frozen_until;
}

// --- connections

void EtcdMember::opened(const std::shared_ptr<Connection>& c) {
    sessions_.push_back(std::make_shared<Session>(*this, c));
    kernel_.after(kernel_.random().between(10 * us, 100 * us),
                  [this, s = sessions_.back()] { take(s); });
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

/// As etcd does when it is asked to stop: it still serves the calls that are under way.
void EtcdMember::say_farewell() {
    leaving = true;
    kernel_.trace(machine.name, "says farewell");
    for (const bool last : {false, true})
        kernel_.after(last ? kernel_.random().between(ms, 5 * ms) : 0, [this, last] {
            if (!leaving || stands()) return;
            for (const auto& s : std::vector(sessions_)) {
                s->http.go_away(last, 0, "graceful_stop");
                flush(*s);
            }
        });
}

void EtcdMember::arrived(Connection& c, std::string_view bytes) {
    for (const auto& s : std::vector(sessions_))
        if (s->connection.get() == &c) {
            s->in += bytes;
            take(s);
        }
}

void EtcdMember::take(const SessionPtr& s) {
    if (s->ended) return;
    if (stands()) return kernel_.at(machine.frozen_until, [this, s] { take(s); });
    s->http.receive(std::exchange(s->in, {}));
    flush(*s);
}

void EtcdMember::flush(Session& s) {
    std::string bytes = s.http.output();
    if (!bytes.empty()) s.connection->reply(std::move(bytes));
}

// --- calls

void EtcdMember::go_on(Session& s, std::int32_t id) {
    Call& c = s.calls.at(id);
    c.busy = !c.messages.empty();
    if (!c.busy) return;
    Asked asked{s.shared_from_this(), id, c.path, std::move(c.messages.front())};
    c.messages.pop_front();
    kernel_.after(kernel_.random().between(50 * us, 500 * us),
                  [this, asked = std::move(asked)] { serve(asked); });
}

bool EtcdMember::waits(const Asked& a) const {
    return std::find(sessions_.begin(), sessions_.end(), a.session) != sessions_.end() &&
           a.session->calls.contains(a.call);
}

void EtcdMember::serve(const Asked& a) {
    if (a.session->ended || (!waits(a) && kernel_.random().chance(500))) return;
    if (stands()) return kernel_.at(machine.frozen_until, [this, a] { serve(a); });
    // From what this member knows, without the leader.
    if (a.path == "/etcdserverpb.Watch/Watch") return watch(a);
    // Whoever asked may be gone: it is done all the same.
    cluster_.propose(number_, [this, a](bool led) {
        if (led) return execute(a);
        fail(a, unavailable, "etcdserver: request timed out");
    });
}

/// The time that the client gave it is over; what was asked may yet be done.
void EtcdMember::expire(const SessionPtr& s, std::int32_t call) {
    const Asked a{s, call, {}, {}};
    if (s->ended || !waits(a)) return;
    if (stands()) return kernel_.at(machine.frozen_until, [this, s, call] { expire(s, call); });
    // What a leader has been asked for may have been lost on the way there or back.
    static const std::set<std::string, std::less<>> passed_on{"/etcdserverpb.KV/Txn",
                                                              "/etcdserverpb.Lease/LeaseGrant",
                                                              "/etcdserverpb.Lease/LeaseRevoke"};
    if (passed_on.contains(s->calls.at(call).path) && kernel_.random().chance(500))
        fail(a, unavailable, "etcdserver: request timed out");
    else
        fail(a, deadline_exceeded, "context deadline exceeded");
}

void EtcdMember::fail(const Asked& a, int status, std::string_view why) {
    if (!waits(a)) return;
    a.session->calls.erase(a.call);
    a.session->http.finish(a.call, status, why);
    flush(*a.session);
}

void EtcdMember::execute(const Asked& a) {
    const std::int64_t before = cluster_.store_.revision;
    std::string answer;
    try {
        answer = done(a);
    } catch (const EtcdError& e) {
        if (kernel_.tracing)
            kernel_.trace(machine.name, a.session->connection->route().process.name + ": " +
                                            a.path + " " + lab::protobuf_text(a.message) + " -> " +
                                            e.what());
        return fail(a, e.code, e.what());
    }
    if (cluster_.store_.revision != before) cluster_.changed();
    if (!waits(a)) return;
    Session& s = *a.session;
    s.http.send(a.call, answer);
    Call& c = s.calls.at(a.call);
    const bool unary = a.path != "/etcdserverpb.Lease/LeaseKeepAlive";
    if (unary || (c.last && c.messages.empty())) {
        s.http.finish(a.call);
        s.calls.erase(a.call);
    } else {
        go_on(s, a.call);
    }
    flush(s);
}

template <class Request, class Answer>
std::string EtcdMember::typed(const Asked& a, Answer answer) {
    Request request;
    if (!request.ParseFromString(a.message))
        throw std::runtime_error("a client sends nonsense to " + a.path);
    auto out = answer(request);
    tell_cluster(*out.mutable_header());
    const std::string bytes = out.SerializeAsString();
    if (kernel_.tracing)
        kernel_.trace(machine.name,
                      a.session->connection->route().process.name + ": " + a.path + " " +
                          lab::protobuf_text(a.message).substr(0, longest_trace) + " -> " +
                          lab::protobuf_text(bytes).substr(0, longest_trace));
    return bytes;
}

std::string EtcdMember::done(const Asked& a) {
    EtcdStore& store = cluster_.store_;
    if (a.path == "/etcdserverpb.KV/Txn")
        return typed<rpc::TxnRequest>(a, [&](const auto& r) { return store.transaction(r); });
    if (a.path == "/etcdserverpb.KV/Range")
        return typed<rpc::RangeRequest>(a, [&](const auto& r) { return store.range(r); });
    if (a.path == "/etcdserverpb.Lease/LeaseGrant")
        return typed<rpc::LeaseGrantRequest>(a, [&](const auto& r) { return grant(r); });
    if (a.path == "/etcdserverpb.Lease/LeaseKeepAlive")
        return typed<rpc::LeaseKeepAliveRequest>(a, [&](const auto& r) { return keep_alive(r); });
    if (a.path == "/etcdserverpb.Lease/LeaseRevoke")
        return typed<rpc::LeaseRevokeRequest>(a, [&](const auto& r) {
            const auto out = store.revoke(r);
            cluster_.ends_.erase(r.id());
            return out;
        });
    if (a.path == "/etcdserverpb.Lease/LeaseTimeToLive")
        return typed<rpc::LeaseTimeToLiveRequest>(a, [&](const auto& r) {
            const bool known = store.lease(r.id()) != nullptr;
            return store.time_to_live(r, known ? cluster_.left(r.id()) / second : 0);
        });
    if (a.path == "/etcdserverpb.Cluster/MemberList")
        return typed<rpc::MemberListRequest>(a, [&](const auto&) {
            rpc::MemberListResponse out;
            store.tell_revision(*out.mutable_header());
            for (std::size_t i = 0; i < cluster_.size(); ++i)
                out.add_members()->set_id(i + 1);
            return out;
        });
    throw std::runtime_error("etcd: no path " + a.path);
}

void EtcdMember::tell_cluster(rpc::ResponseHeader& to) const {
    to.set_cluster_id(1);
    to.set_member_id(number_ + 1);
    to.set_raft_term(2 + cluster_.elections());
}

rpc::LeaseGrantResponse EtcdMember::grant(const rpc::LeaseGrantRequest& r) {
    rpc::LeaseGrantResponse out = cluster_.store_.grant(r);
    cluster_.let_last(out.id(), out.ttl());
    out.set_ttl(std::max(out.ttl(), shortest_lease));
    return out;
}

rpc::LeaseKeepAliveResponse EtcdMember::keep_alive(const rpc::LeaseKeepAliveRequest& r) {
    rpc::LeaseKeepAliveResponse out = cluster_.store_.keep_alive(r);
    // One whose time is over is not kept, though it has not been revoked yet.
    if (out.ttl() != 0 && cluster_.left(r.id()) >= 0)
        cluster_.let_last(r.id(), out.ttl());
    else
        out.clear_ttl();
    return out;
}

// --- watches

void EtcdMember::watch(const Asked& a) {
    if (!waits(a)) return;
    rpc::WatchRequest asked;
    if (!asked.ParseFromString(a.message))
        throw std::runtime_error("a client sends nonsense to watch");
    Session& s = *a.session;
    Call& c = s.calls.at(a.call);
    const EtcdStore& store = cluster_.store();
    rpc::WatchResponse out;
    tell_cluster(*out.mutable_header());
    store.tell_revision(*out.mutable_header());
    if (asked.has_create_request()) {
        const auto& wanted = asked.create_request();
        out.set_created(true);
        if (!wanted.range_end().empty() && wanted.range_end() != std::string(1, '\0') &&
            wanted.range_end() <= wanted.key()) {
            out.set_watch_id(-1);
            out.set_canceled(true);
            out.set_cancel_reason("mvcc: watcher range is empty");
        } else {
            out.set_watch_id(c.next_watch++);
            const auto from = wanted.start_revision();
            c.watches[out.watch_id()] = {wanted.key(), wanted.range_end(),
                                         from == 0 ? store.revision + 1 : from};
        }
        s.http.send(a.call, out.SerializeAsString());
    } else if (asked.has_cancel_request() &&
               c.watches.erase(asked.cancel_request().watch_id()) > 0) {
        out.set_watch_id(asked.cancel_request().watch_id());
        out.set_canceled(true);
        s.http.send(a.call, out.SerializeAsString());
    }
    go_on(s, a.call);
    flush(s);
    tell_later();
}

/// A member knows of a change a little later, or when it hears the others again.
void EtcdMember::tell_later() {
    if (std::exchange(telling_, true)) return;
    kernel_.after(
        kernel_.random().between(20 * us, kernel_.random().chance(50) ? cluster_.slowest : 2 * ms),
        [this] {
            telling_ = false;
            if (!up || stands() || kernel_.now() < isolated_until) return;
            for (const auto& s : std::vector(sessions_))
                tell(*s);
        });
}

void EtcdMember::tell(Session& s) {
    for (auto& [stream, call] : s.calls)
        for (auto at = call.watches.begin(); at != call.watches.end();) {
            const rpc::WatchResponse news = news_of(at->first, at->second);
            const bool over = news.canceled();
            if (over || !news.events().empty()) {
                const std::string bytes = news.SerializeAsString();
                if (kernel_.tracing)
                    kernel_.trace(machine.name,
                                  "tells " + s.connection->route().process.name + ": " +
                                      lab::protobuf_text(bytes).substr(0, longest_trace));
                s.http.send(stream, bytes);
            }
            at = over ? call.watches.erase(at) : std::next(at);
        }
    flush(s);
}

rpc::WatchResponse EtcdMember::news_of(std::int64_t id, Watch& watch) const {
    const EtcdStore& store = cluster_.store();
    rpc::WatchResponse out;
    tell_cluster(*out.mutable_header());
    out.set_watch_id(id);
    if (watch.next < store.compacted) {
        out.set_canceled(true);
        out.set_compact_revision(store.compacted);
        return out;
    }
    store.tell_revision(*out.mutable_header());
    store.tell_events(watch.begin, watch.end, watch.next, out);
    watch.next = std::max(watch.next, store.revision + 1);
    return out;
}

}  // namespace holdfast::sim
