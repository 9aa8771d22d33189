#include "zookeeper.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "zookeeper_wire.hpp"

namespace holdfast::sim {
using namespace wire;
namespace {

Writer& put_stat(Writer& w, const ZkNode& n) {
    w.int64(n.czxid).int64(n.mzxid).int64(0).int64(0);
    w.int32(n.version).int32(n.cversion()).int32(0).int64(n.session);
    w.int32(static_cast<std::int32_t>(n.data.size()));
    return w.int32(static_cast<std::int32_t>(n.children.size())).int64(n.pzxid);
}

/// One operation, alone or of a multi.
struct Operation {
    std::int32_t type = 0;
    ZkChange change{};
    std::int32_t version = -1;
    bool sequential = false;
};

Operation read_operation(std::int32_t type, Reader& r, std::int64_t session) {
    Operation out;
    out.type = type;
    out.change.path = r.text();
    switch (type) {
        case create:
        case create2:
        case create_container: {
            out.change.kind = ZkChange::Kind::create;
            out.change.data = r.text();
            r.acl();
            const std::int32_t flags = r.int32();
            // A mode decides, and not the request.
            constexpr std::int32_t ephemeral = 1, sequential = 2, container = 4;
            out.sequential = (flags & sequential) != 0;
            out.change.session = (flags & ephemeral) != 0 ? session : 0;
            out.change.container = flags == container;
            break;
        }
        case remove:
            out.change.kind = ZkChange::Kind::remove;
            out.version = r.int32();
            break;
        case set_data:
            out.change.kind = ZkChange::Kind::set;
            out.change.data = r.text();
            out.version = r.int32();
            break;
        default:
            throw std::runtime_error("zookeeper: no operation " + std::to_string(type));
    }
    return out;
}

/// Of one operation that was done, alone or in a multi, with the nodes as it left them.
void put_result(Writer& w, std::int32_t request, const Operation& o, const ZkChange& done,
                const ZkTree& after) {
    // In a multi what was made tells of which kind its answer is, and not what was asked.
    const bool creates = done.kind == ZkChange::Kind::create;
    const std::int32_t made = done.container ? create2 : create;
    const std::int32_t type = request == multi && creates ? made : o.type;
    if (request == multi) w.int32(type).flag(false).int32(0);
    if (creates) w.text(done.path);
    if (type == create2 || type == create_container || type == set_data)
        put_stat(w, *after.find(done.path));
}

/// Whoever resumes a session has to know it.
std::string password_of(std::int64_t session) {
    Random r(static_cast<std::uint64_t>(session));
    Writer w;
    w.int64(static_cast<std::int64_t>(r.next())).int64(static_cast<std::int64_t>(r.next()));
    return w.bytes;
}

}  // namespace

// --- the ensemble

ZkEnsemble::ZkEnsemble(Kernel& k, std::size_t servers, Nanos tick, int sync_limit)
    : slowest(tick), kernel_(k), tick_(tick), sync_limit_(sync_limit) {
    for (std::size_t i = 0; i < servers; ++i)
        servers_.push_back(std::make_unique<ZkServer>(*this, k, i));
    leader_ = k.random().below(servers);
    std::string config;
    for (std::size_t i = 0; servers > 1 && i < servers; ++i)
        config += "server." + std::to_string(i + 1) + "=10.0.0." + std::to_string(i + 1) +
                  ":2888:3888:participant;2181\n";
    committed_.nodes["/zookeeper/config"].data = config + "version=0";
    for (const auto& s : servers_)
        s->tree_ = committed_;
    this->tick();
}
ZkEnsemble::~ZkEnsemble() = default;

bool ZkEnsemble::serves(std::size_t i) const {
    return servers_[i]->up && kernel_.now() >= servers_[i]->machine.frozen_until;
}
bool ZkEnsemble::hears_others(std::size_t i) const {
    return serves(i) && (size() == 1 || kernel_.now() >= servers_[i]->isolated_until);
}
bool ZkEnsemble::has_majority() const {
    if (leader_ == none || !hears_others(leader_)) return false;
    std::size_t together = 0;
    for (std::size_t i = 0; i < size(); ++i)
        together += hears_others(i) && (i == leader_ || servers_[i]->serving_) ? 1 : 0;
    return together > size() / 2;
}
Nanos ZkEnsemble::leader_clock() const {
    return servers_[leader_]->machine.clock(kernel_.now());
}

bool ZkEnsemble::passable(std::size_t i) const {
    return leader_ != none && hears_others(leader_) && hears_others(i);
}

void ZkEnsemble::to_leader(std::size_t i, std::function<void()> what) {
    if (i == leader_) return what();
    if (leader_ != none) put(i, true, std::move(what));
}

void ZkEnsemble::from_leader(std::size_t i, std::function<void()> what) {
    if (i == leader_) return what();
    put(i, false, std::move(what));
}

void ZkEnsemble::put(std::size_t i, bool up, std::function<void()> what) {
    ZkServer& s = *servers_[i];
    ZkServer::Link& link = up ? s.up_ : s.down_;
    Random& r = kernel_.random();
    link.last = std::max(link.last + 1,
                         kernel_.now() + r.between(20 * us, r.chance(50) ? slowest : 2 * ms));
    kernel_.at(link.last,
               [this, i, &s, &link, generation = s.generation_, what = std::move(what)]() mutable {
                   if (s.generation_ != generation) return;
                   if (passable(i) && link.held.empty()) return what();
                   link.held.push_back(std::move(what));
               });
}

void ZkEnsemble::pump() {
    for (std::size_t i = 0; i < size(); ++i)
        for (ZkServer::Link* link : {&servers_[i]->up_, &servers_[i]->down_})
            while (!link->held.empty() && passable(i)) {
                const auto what = std::move(link->held.front());
                link->held.pop_front();
                what();
            }
    if (limbo_.empty() || !has_majority()) return;
    for (const auto& what : std::exchange(limbo_, {}))
        what();
}

void ZkEnsemble::cut_off(ZkServer& s) {
    ++s.generation_;
    s.up_.held.clear();
    s.down_.held.clear();
    s.touched_.clear();
}

void ZkEnsemble::touch(std::int64_t id) {
    const auto at = sessions_.find(id);
    if (at == sessions_.end() || leader_ == none) return;
    const Nanos until = leader_clock() + at->second.timeout;
    at->second.ends = std::max(at->second.ends, (until / tick_ + 1) * tick_);
}

Nanos ZkEnsemble::ends(std::int64_t id) const {
    const auto at = sessions_.find(id);
    if (at == sessions_.end()) return 0;
    return leader_ == none ? never : servers_[leader_]->machine.when(at->second.ends);
}

void ZkEnsemble::commit(std::vector<ZkChange> changes, std::int64_t closes) {
    Transaction t;
    t.zxid = epoch_ << 32U | ++counter_;
    t.changes = std::move(changes);
    t.closes = closes;
    for (const ZkChange& c : t.changes) {
        committed_.make(c, t.zxid);
        if (decided) decided(c);
    }
    if (closes != 0) sessions_.erase(closes);
    log_.push_back(t);
    const std::size_t index = log_.size();
    for (std::size_t i = 0; i < size(); ++i)
        if (servers_[i]->serving_)
            from_leader(i, [this, i, index] { servers_[i]->apply_up_to(index); });
}

void ZkEnsemble::tick() {
    kernel_.after(tick_ / 2, [this] { tick(); });
    const bool leads = leader_ != none && serves(leader_);
    // From a leader that stood still they come at once. What was asked for meanwhile is committed
    // after one more round trip to the others.
    if (leads) ping_others();
    pump();
    if (leads) {
        if (has_majority()) servers_[leader_]->heard_ = kernel_.now();
        if (has_majority()) end_sessions();
        if (has_majority()) drop_containers();
    }
    drop_lost();
}

/// The answers bring the sessions that were heard of.
void ZkEnsemble::ping_others() {
    for (std::size_t i = 0; i < size(); ++i) {
        ZkServer& s = *servers_[i];
        if (i == leader_ || !s.serving_) continue;
        from_leader(i, [this, &s, i] {
            s.heard_ = kernel_.now();
            to_leader(i, [this, touched = std::exchange(s.touched_, {})] {
                for (const std::int64_t id : touched)
                    touch(id);
            });
        });
    }
}

void ZkEnsemble::end_sessions() {
    const Nanos clock = leader_clock();
    std::vector<std::int64_t> over;
    for (const auto& [id, session] : sessions_)
        if (session.ends <= clock) over.push_back(id);
    for (const std::int64_t id : over) {
        kernel_.trace("zookeeper", "ends session " + std::to_string(id));
        end_session(id);
    }
}

void ZkEnsemble::end_session(std::int64_t id) {
    std::vector<ZkChange> gone;
    for (const std::string& path : committed_.nodes_of(id))
        gone.push_back({.kind = ZkChange::Kind::remove, .path = path});
    commit(std::move(gone), id);
}

/// Those that are empty go after a while.
void ZkEnsemble::drop_containers() {
    std::vector<std::string> empty;
    for (const auto& [path, node] : committed_.nodes)
        if (node.container && node.creates > 0 && node.children.empty()) empty.push_back(path);
    for (const std::string& path : empty)
        if (kernel_.random().chance(dropped_containers))
            commit({{.kind = ZkChange::Kind::remove, .path = path}});
}

/// Whoever has not heard of the others for too long serves nobody, until it does.
void ZkEnsemble::drop_lost() {
    const Nanos now = kernel_.now();
    for (std::size_t i = 0; i < size(); ++i) {
        ZkServer& s = *servers_[i];
        if (!serves(i)) continue;
        if (s.serving_ && size() > 1 && now > s.heard_ + sync_limit_ * tick_) {
            kernel_.trace(s.name(), "has lost the others");
            s.serving_ = false;
            cut_off(s);
            s.drop_clients();
            if (i == leader_) elect_later();
        }
        if (!s.serving_ && i != leader_ && leader_ != none && hears_others(i) && has_majority()) {
            s.serving_ = true;
            cut_off(s);
            s.heard_ = now;
            s.apply_up_to(log_.size());
        }
    }
}

void ZkEnsemble::elect_later() {
    leader_ = none;
    for (const auto& s : servers_)
        cut_off(*s);
    const unsigned number = ++elections_;
    kernel_.after(kernel_.random().between(tick_, 5 * tick_), [this, number] {
        if (number == elections_) elect();
    });
}

void ZkEnsemble::elect() {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < size(); ++i)
        if (hears_others(i)) able.push_back(i);
    if (able.size() <= size() / 2) {
        const unsigned number = ++elections_;
        kernel_.after(kernel_.random().between(tick_, 3 * tick_), [this, number] {
            if (number == elections_) elect();
        });
        return;
    }
    leader_ = able[kernel_.random().below(able.size())];
    ++epoch_;
    counter_ = 0;
    kernel_.trace("zookeeper", servers_[leader_]->name() + " leads");
    // Of a majority one has all that was committed. All others begin anew with their clients.
    for (std::size_t i = 0; i < size(); ++i) {
        ZkServer& s = *servers_[i];
        cut_off(s);
        const bool takes_part = std::find(able.begin(), able.end(), i) != able.end();
        s.drop_clients();
        s.serving_ = takes_part;
        s.heard_ = kernel_.now();
        if (takes_part) s.apply_up_to(log_.size());
    }
    for (auto& [id, session] : sessions_) {
        session.ends = 0;
        touch(id);
    }
    for (const auto& what : std::exchange(limbo_, {}))
        if (kernel_.random().chance(300)) what();
}

void ZkEnsemble::restart(std::size_t i, Nanos down) {
    if (!servers_[i]->up) return;
    stop(i);
    kernel_.after(down, [this, i] { start(i); });
}

void ZkEnsemble::stop(std::size_t i) {
    ZkServer& s = *servers_[i];
    s.up = false;
    s.drop_clients();
    s.serving_ = false;
    cut_off(s);
    if (leader_ == i) elect_later();
}

void ZkEnsemble::start(std::size_t i) {
    ZkServer& s = *servers_[i];
    if (std::exchange(s.up, true)) return;
    s.machine.frozen_until = kernel_.now();
    if (leader_ == none) elect_later();
}

void ZkEnsemble::pause(std::size_t i, Nanos until) {
    ZkServer& s = *servers_[i];
    s.machine.frozen_until = std::max(s.machine.frozen_until, until);
    if (leader_ == i && size() > 1)
        kernel_.after(sync_limit_ * tick_, [this, i] {
            if (leader_ == i && !serves(i)) elect_later();
        });
}

void ZkEnsemble::isolate(std::size_t i, Nanos until) {
    if (size() == 1) return;
    servers_[i]->isolated_until = std::max(servers_[i]->isolated_until, until);
    // The others do not wait for a leader that they do not hear.
    if (leader_ == i)
        kernel_.after(kernel_.random().between(tick_, sync_limit_ * tick_), [this, i] {
            if (leader_ == i && kernel_.now() < servers_[i]->isolated_until) elect_later();
        });
}

void ZkEnsemble::flush() {
    const std::string config = committed_.nodes["/zookeeper/config"].data;
    committed_ = {};
    committed_.nodes["/zookeeper/config"].data = config;
    log_.clear();
    sessions_.clear();
    epoch_ = 1;
    counter_ = 0;
    for (const auto& s : servers_) {
        s->drop_clients();
        s->tree_ = committed_;
        s->applied_ = 0;
        s->zxid_ = 0;
        cut_off(*s);
    }
}

void ZkEnsemble::recover() {
    slowest = 2 * ms;
    for (const auto& s : servers_) {
        s->up = true;
        s->machine.frozen_until = s->isolated_until = kernel_.now();
    }
    if (leader_ == none) elect();
    drop_lost();
    pump();
}

// --- a server

ZkServer::ZkServer(ZkEnsemble& e, Kernel& k, std::size_t number)
    : ensemble_(e), kernel_(k), number_(number) {
    machine.name = "zk" + std::to_string(number);
    machine.local = 1000 * second + k.random().between(0, 1000 * second);
    machine.ppm = k.random().between(-3000, 3000);
}

void ZkServer::opened(const std::shared_ptr<Connection>& c) {
    clients_.push_back(std::make_shared<Client>());
    clients_.back()->connection = c;
}

void ZkServer::closed(Connection& c) {
    for (const ClientPtr& one : clients_)
        if (one->connection.get() == &c) one->ended = true;
    std::erase_if(clients_, [&](const ClientPtr& one) { return one->connection.get() == &c; });
}

void ZkServer::hang_up(const ClientPtr& c) {
    c->ended = true;
    c->connection->server_closes(false);
    std::erase(clients_, c);
}

void ZkServer::drop_clients() {
    for (const ClientPtr& c : std::exchange(clients_, {})) {
        c->ended = true;
        c->connection->server_closes(kernel_.random().chance(500));
    }
}

void ZkServer::arrived(Connection& c, std::string_view bytes) {
    for (const ClientPtr& one : std::vector(clients_))
        if (one->connection.get() == &c) {
            one->in += bytes;
            return look_at(one);
        }
}

void ZkServer::look_at(const ClientPtr& c) {
    if (c->busy || c->ended || c->in.size() < 4) return;
    const auto size = static_cast<std::size_t>(Reader(c->in).int32());
    if (c->in.size() < 4 + size) return;
    const std::string frame = c->in.substr(4, size);
    c->in.erase(0, 4 + size);
    c->busy = true;
    kernel_.after(kernel_.random().between(20 * us, 300 * us),
                  [this, c, frame] { serve(c, frame); });
}

void ZkServer::go_on(const ClientPtr& c) {
    c->busy = false;
    look_at(c);
}

void ZkServer::serve(const ClientPtr& c, const std::string& frame) {
    if (c->ended) return;
    if (kernel_.now() < machine.frozen_until)
        return kernel_.at(machine.frozen_until + 1, [this, c, frame] { serve(c, frame); });
    if (!serving_) return hang_up(c);
    if (!c->greeted) return greet(c, frame);
    // Any word of a client counts.
    if (ensemble_.leader_ == number_)
        ensemble_.touch(c->session);
    else
        touched_.insert(c->session);
    Reader r(frame);
    const std::int32_t xid = r.int32(), type = r.int32();
    const std::string body = frame.substr(8);
    switch (type) {
        case ping:
            reply(c, xid_of_pings, ZkError::ok);
            return go_on(c);
        case exists:
        case get_data:
        case get_children:
        case remove_watches:
        case set_watches_again:
            read(c, xid, type, body);
            return go_on(c);
        default:
            return write(c, xid, type, body);
    }
}

void ZkServer::greet(const ClientPtr& c, const std::string& frame) {
    Reader r(frame);
    r.int32();
    const std::int64_t seen = r.int64();
    const Nanos asked = r.int32() * ms;
    const std::int64_t session = r.int64();
    const std::string password = r.text();
    // Another server has told it of more.
    if (seen > zxid_) return hang_up(c);
    const Nanos timeout = std::clamp(asked, 2 * ensemble_.tick_, 20 * second);
    if (session != 0) {
        // An earlier connection is of no use any more, whoever asks.
        for (const ClientPtr& earlier : std::vector(clients_))
            if (earlier->greeted && earlier->session == session) hang_up(earlier);
        if (password != password_of(session)) return welcome(c, 0);
    }
    ensemble_.to_leader(number_, [this, c, session, timeout] {
        if (!ensemble_.has_majority()) return;
        auto& sessions = ensemble_.sessions_;
        if (session != 0 && !sessions.contains(session))
            return ensemble_.from_leader(number_, [this, c] { welcome(c, 0); });
        if (session != 0) {
            c->session = session;
            sessions[session].owner = number_;
            sessions[session].timeout = timeout;
            ensemble_.touch(session);
            return ensemble_.from_leader(number_, [this, c, timeout] { welcome(c, timeout); });
        }
        c->session = ++ensemble_.last_session_;
        sessions[c->session] = {timeout, 0, number_};
        ensemble_.touch(c->session);
        ensemble_.commit({});  // a write as any other
        ensemble_.from_leader(number_, [this, c, timeout] { welcome(c, timeout); });
    });
}

void ZkServer::welcome(const ClientPtr& c, Nanos timeout) {
    if (c->ended) return;
    Writer w;
    w.int32(0).int32(static_cast<std::int32_t>(timeout / ms));
    w.int64(timeout == 0 ? 0 : c->session);
    w.text(timeout == 0 ? std::string(16, 0) : password_of(c->session)).flag(false);
    if (kernel_.tracing)
        kernel_.trace(name(), c->connection->route().process.name +
                                  (timeout == 0 ? ": its session is over"
                                                : ": session " + std::to_string(c->session) + ", " +
                                                      std::to_string(timeout / ms) + " ms"));
    send(c, framed(w.bytes));
    if (timeout == 0) return hang_up(c);
    c->greeted = true;
    go_on(c);
}

void ZkServer::send(const ClientPtr& c, const std::string& frame) {
    if (!c->ended) c->connection->reply(frame);
}

void ZkServer::reply(const ClientPtr& c, std::int32_t xid, ZkError error, const std::string& body) {
    Writer w;
    w.int32(xid).int64(zxid_).int32(static_cast<std::int32_t>(error));
    send(c, framed(w.bytes + body));
}

void ZkServer::read(const ClientPtr& c, std::int32_t xid, std::int32_t type,
                    const std::string& body) {
    if (type == set_watches_again) {
        set_watches(c, body);
        return reply(c, xid, ZkError::ok);
    }
    Reader r(body);
    const std::string path = r.text();
    if (type == remove_watches) {
        const bool known =
            r.int32() == 1 ? c->child_watches.erase(path) != 0 : c->data_watches.erase(path) != 0;
        return reply(c, xid, known ? ZkError::ok : ZkError::no_watcher);
    }
    const bool watch = r.flag();
    const ZkNode* node = tree_.find(path);
    if (kernel_.tracing)
        kernel_.trace(name(), c->connection->route().process.name +
                                  (type == get_children ? ": lists " : ": reads ") + path +
                                  (node == nullptr ? ", which is not there" : ""));
    if (node == nullptr) {
        if (type == exists && watch) c->data_watches.insert(path);
        return reply(c, xid, ZkError::no_node);
    }
    Writer w;
    if (type == exists) {
        if (watch) c->data_watches.insert(path);
        put_stat(w, *node);
    } else if (type == get_data) {
        if (watch) c->data_watches.insert(path);
        put_stat(w.text(node->data), *node);
    } else {
        if (watch) c->child_watches.insert(path);
        // In no order.
        std::vector<std::string> children(node->children.begin(), node->children.end());
        for (std::size_t i = children.size(); i > 1; --i)
            std::swap(children[i - 1], children[kernel_.random().below(i)]);
        w.texts(children);
    }
    reply(c, xid, ZkError::ok, w.bytes);
}

/// After a reconnect: what has happened since the client's last transaction is told at once.
void ZkServer::set_watches(const ClientPtr& c, const std::string& body) {
    Reader r(body);
    const std::int64_t since = r.int64();
    const auto data = r.texts(), exist = r.texts(), child = r.texts();
    if (!exist.empty()) throw std::runtime_error("zookeeper: a watch for a node that is not there");
    const auto set = [&](const std::vector<std::string>& paths, std::int64_t ZkNode::*last,
                         std::int32_t type, std::set<std::string>& watches) {
        for (const std::string& path : paths) {
            const ZkNode* node = tree_.find(path);
            if (node == nullptr)
                tell(c, path, deleted);
            else if (node->*last > since)
                tell(c, path, type);
            else
                watches.insert(path);
        }
    };
    set(data, &ZkNode::mzxid, changed, c->data_watches);
    set(child, &ZkNode::pzxid, child_changed, c->child_watches);
}

void ZkServer::tell(const ClientPtr& c, const std::string& path, std::int32_t type) {
    constexpr std::int32_t connected = 3;
    Writer w;
    w.int32(xid_of_events).int64(-1).int32(0).int32(type).int32(connected).text(path);
    if (kernel_.tracing)
        kernel_.trace(name(), "tells " + c->connection->route().process.name + ": " +
                                  std::to_string(type) + " " + path);
    send(c, framed(w.bytes));
}

struct ZkServer::Request {
    std::int32_t xid = 0, type = 0;
    std::vector<Operation> operations;
    std::string path;  ///< of a sync
};

void ZkServer::write(const ClientPtr& c, std::int32_t xid, std::int32_t type,
                     const std::string& body) {
    auto q = std::make_shared<Request>();
    q->xid = xid;
    q->type = type;
    Reader r(body);
    if (type == multi) {
        for (;;) {
            const std::int32_t one = r.int32();
            const bool done = r.flag();
            r.int32();
            if (done) break;
            q->operations.push_back(read_operation(one, r, c->session));
        }
    } else if (type == sync) {
        q->path = r.text();
    } else if (type != close_session) {
        q->operations.push_back(read_operation(type, r, c->session));
    }
    ensemble_.to_leader(number_, [this, c, q] {
        if (ensemble_.has_majority()) return execute(c, q);
        // Whether it is ever done is decided with the next leader.
        ensemble_.limbo_.push_back([this, c, q] { execute(c, q); });
    });
}

/// At the leader.
void ZkServer::execute(const ClientPtr& c, const RequestPtr& q) {
    auto& sessions = ensemble_.sessions_;
    const auto session = sessions.find(c->session);
    if (session == sessions.end()) return;  // its end is on its way
    // It went on to another server: this one serves it no more.
    if (session->second.owner != number_) {
        ensemble_.commit({});
        return ensemble_.from_leader(number_, [this, c] {
            if (!c->ended) hang_up(c);
        });
    }
    if (q->type == sync) {
        Writer w;
        return answer(c, q, ZkError::ok, w.text(q->path).bytes);
    }
    if (q->type == close_session) {
        ensemble_.end_session(c->session);
        return answer(c, q, ZkError::ok, {});
    }
    // Each operation of a multi sees what those before it have done.
    ZkTree trial;
    const bool several = q->operations.size() > 1;
    if (several) trial = ensemble_.committed_;
    const std::int64_t zxid = ensemble_.epoch_ << 32U | (ensemble_.counter_ + 1);
    std::vector<ZkChange> changes;
    Writer w;
    for (const Operation& o : q->operations) {
        ZkChange final;
        const ZkError error = (several ? trial : ensemble_.committed_)
                                  .check(o.change, o.version, o.sequential, final);
        if (error != ZkError::ok) {
            ensemble_.commit({});  // it has its number all the same
            return refuse(c, q, error, changes.size());
        }
        if (several) {
            trial.make(final, zxid);
            put_result(w, q->type, o, final, trial);
        }
        changes.push_back(std::move(final));
    }
    ensemble_.commit(changes);
    if (changes.size() == 1)
        put_result(w, q->type, q->operations[0], changes[0], ensemble_.committed_);
    if (q->type == multi) w.int32(-1).flag(true).int32(-1);
    answer(c, q, ZkError::ok, w.bytes);
}

/// Of a multi each operation has its result, and that of those after the refused one is that they
/// were not looked at.
void ZkServer::refuse(const ClientPtr& c, const RequestPtr& q, ZkError error, std::size_t at) {
    if (q->type != multi) return answer(c, q, error, {});
    Writer w;
    for (std::size_t i = 0; i < q->operations.size(); ++i) {
        const auto code = i < at ? 0 : i == at ? static_cast<std::int32_t>(error) : -2;
        w.int32(-1).flag(false).int32(code).int32(code);
    }
    w.int32(-1).flag(true).int32(-1);
    answer(c, q, ZkError::ok, w.bytes);
}

void ZkServer::answer(const ClientPtr& c, const RequestPtr& q, ZkError error,
                      const std::string& words) {
    ensemble_.from_leader(number_, [this, c, q, error, words] {
        if (kernel_.tracing) {
            std::string what = c->connection->route().process.name + ":";
            for (const Operation& o : q->operations)
                what += " " + std::to_string(o.type) + " " + o.change.path;
            kernel_.trace(name(), what + " type " + std::to_string(q->type) + " -> " +
                                      std::to_string(static_cast<std::int32_t>(error)));
        }
        reply(c, q->xid, error, words);
        if (c->ended) return;
        if (q->type == close_session) return hang_up(c);
        go_on(c);
    });
}

void ZkServer::apply_up_to(std::size_t index) {
    while (applied_ < std::min(index, ensemble_.log_.size()))
        apply(ensemble_.log_[applied_++]);
}

void ZkServer::apply(const ZkEnsemble::Transaction& t) {
    zxid_ = t.zxid;
    for (const ZkChange& c : t.changes) {
        tree_.make(c, t.zxid);
        const std::string parent = ZkTree::parent_of(c.path);
        if (c.kind == ZkChange::Kind::create) fire(c.path, created, true, false);
        if (c.kind == ZkChange::Kind::remove) fire(c.path, deleted, true, true);
        if (c.kind == ZkChange::Kind::set) fire(c.path, changed, true, false);
        if (c.kind != ZkChange::Kind::set) fire(parent, child_changed, false, true);
    }
    if (t.closes == 0) return;
    for (const ClientPtr& c : std::vector(clients_))
        if (c->session == t.closes && c->greeted) {
            // Who asked for it is answered first.
            kernel_.after(5 * ms, [this, c] {
                if (!c->ended) hang_up(c);
            });
        }
}

/// Whoever watches in both ways hears of a deletion once.
void ZkServer::fire(const std::string& path, std::int32_t type, bool data, bool child) {
    for (const ClientPtr& c : std::vector(clients_)) {
        const bool by_data = data && c->data_watches.erase(path) != 0;
        const bool by_child = child && c->child_watches.erase(path) != 0;
        if (by_data || by_child) tell(c, path, type);
    }
}

}  // namespace holdfast::sim
