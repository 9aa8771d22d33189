// How the nodes of places are made.
#include <algorithm>

#include "client_library.hpp"
#include "errors.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr std::size_t most_parents = 20'000;
constexpr int most_tries = 5;
/// Nodes asked for at once. A server answers them, each with the four requests that go with it,
/// within an eighth of a second, and a busy one still within a request timeout of a second.
constexpr std::size_t most_asking = 256;

}  // namespace

QueueNodePtr OwnNodes::make_place(const spi::Attempt& a) {
    const auto take_place = [&](std::string_view folder) {
        auto p = std::make_shared<QueueNode>();
        p->session = session_.weak_from_this();
        p->name = a.name;
        p->owner = a.owner;
        p->parent = parent_path(shared_.options, a.name);
        if (!folder.empty()) (p->parent += '/') += folder;
        p->guid = make_guid();
        if (a.units.mode == Mode::shared) p->access = QueueNode::Access::reads;
        if (a.kind == Kind::shared_mutex) p->recipe = p->reads() ? Recipe::reader : Recipe::writer;
        if (a.kind == Kind::mutex && shared_.options.latch) p->recipe = Recipe::latch;
        p->ttl = a.ttl;
        p->lock_delay = a.lock_delay;
        if (a.units.permits()) {
            p->permits = a.units.take;
            p->name_says = limit_text(a.units.of);
        }
        if (folder == permits_folder) {
            p->recipe = Recipe::permit;
            p->limit = a.units.of;
            p->to_agree = true;
        }
        if (p->serial == 0) p->serial = ++last_serial_;
        places_.insert(p);
        ++queues().of(*p).places;
        return p;
    };
    session_.touch();
    if (!a.units.permits()) return take_place({});
    auto p = take_place(permits_folder);
    p->turn = take_place(turns_folder);
    return p;
}

void OwnNodes::end_place(const QueueNodePtr& p, QueueNode::State state, error_code why) {
    if (places_.erase(p) == 0) return;
    entering_.erase(p);
    if (Queue* const q = queues().find(p->parent)) --q->places;
    const QueueNode::State before = std::exchange(p->state, state);
    p->why = why;
    // Without it nobody would ask for permits from there, and all behind it would wait.
    if (p->turn) leave(p->turn, p->how);
    session_.touch();
    p->gate.open();
    if (before == QueueNode::State::granted) shared_.beats.open();
    if (occupies_room(before)) give_room();
}

void OwnNodes::enter(const QueueNodePtr& p) {
    if (p->state != QueueNode::State::idle) return;
    p->state = QueueNode::State::enlisted;
    entering_.insert(p);
    let_in();
}

void OwnNodes::let_in() {
    while (!session_.over() && !session_.refusal() && handle_.connected() &&
           asking_ < most_asking && !entering_.empty()) {
        const QueueNodePtr p = *entering_.begin();
        entering_.erase(entering_.begin());
        ++asking_;
        p->asked = asked_last_ = boot_clock::now();
        create_node(p);
    }
}

void OwnNodes::give_room() {
    --asking_;
    let_in();
}

// --- parents
// ------------

void OwnNodes::create_base() {
    const std::string& base = shared_.options.base;
    for (std::size_t at = base.find('/', 1); !base.empty(); at = base.find('/', at + 1)) {
        create_parent(base.substr(0, at), {}, Handle::Kind::persistent);
        if (at == base.npos) break;
    }
}

void OwnNodes::create_parent(const std::string& path, std::string_view data, Handle::Kind kind,
                             Handle::Then then) {
    handle_.create(path, data, kind, when_answered([this, then = std::move(then)](Call& c) {
                       // Servers refuse it also where the node exists, so that this alone says
                       // nothing.
                       if (from_rc(c.rc) == errc::denied) no_parent_ = from_rc(c.rc);
                       if (c.rc == ZOK) no_parent_ = {};
                       if (then) then(c);
                   }));
}

error_code OwnNodes::why_not_made(int rc) const {
    return rc == ZNONODE && no_parent_ ? no_parent_ : from_rc(rc);
}

void OwnNodes::create_parents(const QueueNode& p) {
    const std::string& parent = p.parent;
    if (known_parents_.size() >= most_parents) known_parents_.clear();
    known_parents_.insert_or_assign(parent, VerifiedParent{});
    const bool container = shared_.options.containers && has_containers_;
    // A folder lies in the node of the name.
    const std::string name = parent_path(shared_.options, p.name);
    const auto kind = container ? Handle::Kind::container : Handle::Kind::persistent;
    if (name != parent) create_parent(name, p.name_says, kind);
    create_parent(parent, {}, kind, when_answered([this, parent, container](Call& c) {
                      if (!container) return;
                      if (c.rc != ZUNIMPLEMENTED && c.rc != ZBADARGUMENTS) return;
                      has_containers_ = false;
                      known_parents_.erase(parent);
                  }));
}

void OwnNodes::watch_parent(const std::string& parent) {
    known_parents_[parent].asked = true;
    handle_.get(parent, true, when_answered([this, parent](Call& c) {
                    const auto known = known_parents_.find(parent);
                    if (known == known_parents_.end()) return;
                    known->second = {};
                    if (c.rc == ZOK) known->second.life = ++lives_;
                }));
}

bool OwnNodes::parent_changed(const std::string& path, bool deleted) {
    const auto known = known_parents_.find(path);
    if (known == known_parents_.end()) return false;
    if (deleted)
        known_parents_.erase(known);
    else
        known->second = {};  // the watch was for this
    return true;
}

// --- nodes
// ---------

void OwnNodes::create_node(const QueueNodePtr& p) {
    p->state = QueueNode::State::creating;
    if (p->tries > 0) create_base();
    const auto known = known_parents_.find(p->parent);
    const bool foreseen = known != known_parents_.end() && known->second.clear && p->limit == 0;
    if (known == known_parents_.end())
        create_parents(*p);
    else if (known->second.life == 0 && !known->second.asked && p->limit == 0)
        watch_parent(p->parent);  // it is used again
    const std::string path = p->parent + "/" + node_prefix(p->guid, p->recipe);
    auto then = when_answered([this, p, foreseen](Call& c) { created(p, foreseen, c); });
    if (p->limit > 0) {
        handle_.create_several(path, data_of(*p, false), p->permits, std::move(then));
        read_name(*p);
    } else {
        handle_.create(path, data_of(*p, p->reads()), Handle::Kind::sequential, std::move(then));
    }
    // In the same round trip: what it answers includes the node.
    Queue& q = queues().of(*p);
    p->list = q.sent + 1;
    if (!foreseen) queues().want_list(q);
}

void OwnNodes::read_name(QueueNode& p) {
    const std::string name = parent_path(shared_.options, p.name);
    p.own_node = handle_.get(name, false);
    p.own_line = handle_.list(name);
}

std::string OwnNodes::data_of(const QueueNode& p, bool reading) const {
    NodeData d;
    d.owner = p.owner;
    d.ttl_ms = std::min(p.ttl, session_.heartbeat().lease_time())
                   .count();  // no longer than the servers keep it
    d.delay_ms = p.lock_delay.count();
    d.permits = p.permits;
    d.asked = p.wanted_back;
    d.shared = reading && p.recipe != Recipe::reader;
    return write_data(d);
}

void OwnNodes::find_rank(const QueueNodePtr& p, bool foreseen) {
    const auto known = known_parents_.find(p->parent);
    const VerifiedParent verified_parent =
        known == known_parents_.end() ? VerifiedParent{} : known->second;
    p->verified_parent = verified_parent.life;
    if (!foreseen) return;  // its list is on the way
    Queue& q = queues().of(*p);
    const auto sequence = sequence_of(p->node);
    if (sequence && verified_parent.clear && *sequence == *verified_parent.clear + 1 &&
        q.entries().begin()->second.own == p) {
        p->listed = true;
        p->gate.open();
    } else if (q.sent < p->list) {
        queues().want_list(q);
    }
}

void OwnNodes::note_clear(const QueueNode& p) {
    // It was the first, so all before it were gone. Where others stand in line the next one would
    // not be the first, and had better ask for the list at once.
    if (p.verified_parent == 0 || p.waited) return;
    const Queue* const q = queues().find(p.parent);
    // Where permits may be held meanwhile, who comes next has to look for them.
    if (q == nullptr || !q->first(p) || q->folder || p.limit > 0) return;
    if (!q->strangers.empty()) return;
    const auto known = known_parents_.find(p.parent);
    const auto sequence = sequence_of(p.node);
    if (known == known_parents_.end() || known->second.life != p.verified_parent || !sequence)
        return;
    known->second.clear = *sequence;
}

bool OwnNodes::stands(const QueueNodePtr& p, std::string node, std::int64_t czxid) {
    p->node = std::move(node);
    p->czxid = czxid;
    p->state = QueueNode::State::queued;
    give_room();
    const auto nodes = p->nodes();
    if (std::all_of(nodes.begin(), nodes.end(), [](const std::string& n) {
            const auto sequence = sequence_of(n);
            return sequence && is_unique(*sequence);
        })) {
        queues().of(*p).add(p);
        return true;
    }
    refuse(p, make(Error::used_up));
    return false;
}

void OwnNodes::created(const QueueNodePtr& p, bool foreseen, Call& c) {
    if (p->state != QueueNode::State::creating) return;
    if (c.rc == ZOK) {
        for (std::string& path : c.children)
            p->more.push_back(path.substr(path.rfind('/') + 1));
        if (!c.children.empty()) {
            c.text = c.children.front();
            p->more.erase(p->more.begin());
        }
        if (!stands(p, c.text.substr(c.text.rfind('/') + 1), c.czxid)) return;
        find_rank(p, foreseen);
        if (p->leaving()) remove_node(p);
        return;
    }
    if (unanswered(c.rc)) {
        // With no connection the request was not even sent; a look shows which of the two it was.
        p->state = QueueNode::State::in_doubt;
        if (!handle_.connected()) return;
        handle_.sync(p->parent);
        find_node(p);
        return;
    }
    if (p->leaving()) return end_place(p, QueueNode::State::gone, {});
    if (c.rc == ZNONODE && p->tries++ < most_tries) {
        known_parents_.erase(p->parent);
        return create_node(p);
    }
    end_place(p, QueueNode::State::failed, why_not_made(c.rc));
}

}  // namespace holdfast::zookeeper
