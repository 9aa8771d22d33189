// After a lost answer: finds out whether a node is there, and whose it is.
#include <algorithm>
#include <unordered_map>

#include "client_library.hpp"
#include "errors.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr milliseconds orphan_patience{1500};

}  // namespace

void OwnNodes::find_node(const QueueNodePtr& p) {
    Queue& q = queues().of(*p);
    p->list = q.sent + 1;
    if (std::find(q.doubtful.begin(), q.doubtful.end(), p) == q.doubtful.end())
        q.doubtful.push_back(p);
    queues().want_list(q);
}

void OwnNodes::resolve_doubts(Queue& q, std::uint64_t number,
                              const std::vector<std::string>& children) {
    std::vector<QueueNodePtr> ready;
    std::erase_if(q.doubtful, [&](const QueueNodePtr& p) {
        if (p->list > number) return false;
        ready.push_back(p);
        return true;
    });
    if (ready.empty()) return;
    std::unordered_map<std::string, std::vector<const std::string*>> by_guid;
    for (const std::string& node : children)
        by_guid[guid_of(node)].push_back(&node);
    for (const QueueNodePtr& p : ready)
        if (p->state == QueueNode::State::in_doubt) resolve(p, by_guid[p->guid]);
}

void OwnNodes::resolve(const QueueNodePtr& p, std::vector<const std::string*> nodes) {
    std::erase_if(nodes, [](const std::string* n) { return !sequence_of(*n); });
    // Made in one step, all of them or none; unless somebody has deleted some meanwhile.
    const std::size_t wanted = p->limit > 0 ? p->permits : 1;
    if (nodes.size() < wanted)
        for (const std::string* node : std::exchange(nodes, {}))
            remove_orphan(p->parent, *node);
    if (nodes.empty()) {
        orphans_.push_back({p->parent, p->guid, {}, boot_clock::now() + orphan_patience});
        return create_again(p);
    }
    std::sort(nodes.begin(), nodes.end(),
              [](const auto* a, const auto* b) { return sequence_of(*a) < sequence_of(*b); });
    p->more.clear();
    for (std::size_t i = 1; i < nodes.size(); ++i)
        if (i < wanted)
            p->more.push_back(*nodes[i]);
        else
            remove_orphan(p->parent, *nodes[i]);
    adopt(p, *nodes.front());
}

void OwnNodes::create_again(const QueueNodePtr& p) {
    if (p->leaving()) return end_place(p, QueueNode::State::gone, {});
    p->guid = make_guid();
    create_node(p);
}

void OwnNodes::adopt(const QueueNodePtr& p, const std::string& node) {
    auto then = when_answered([this, p, node](Call& c) {
        if (p->state != QueueNode::State::in_doubt) return;
        if (unanswered(c.rc)) return;  // the next connection looks again
        Queue& q = queues().of(*p);
        if (c.rc != ZOK && c.rc != ZNONODE) {
            // It may be its own, and would stand ahead of a second one: the next heartbeat looks.
            p->list = q.sent + 1;
            return q.doubtful.push_back(p);
        }
        // Another session's is never ours, whatever its name says.
        if (c.rc != ZOK || c.session != handle_.session()) return create_again(p);
        p->version = c.version;
        if (!stands(p, node, c.czxid)) return;
        if (p->leaving()) return remove_node(p);
        p->list = q.sent + 1;
        queues().want_list(q);
    });
    handle_.get(p->parent + "/" + node, false, std::move(then));
}

void OwnNodes::sweep_orphans(boot_clock::time_point now) {
    std::vector<OrphanNode> due;
    std::erase_if(orphans_, [&](OrphanNode& o) {
        if (o.due > now) return false;
        due.push_back(std::move(o));
        return true;
    });
    for (const OrphanNode& o : due) {
        if (!o.node.empty()) {
            remove_orphan(o.parent, o.node);
            continue;
        }
        auto then = when_answered([this, o](Call& c) {
            if (c.rc != ZOK && c.rc != ZNONODE)
                orphans_.push_back({o.parent, o.guid, {}, boot_clock::now()});
            for (const std::string& node : c.children)
                if (made_by(node, o.guid)) remove_orphan(o.parent, node);
        });
        handle_.list(o.parent, std::move(then));
    }
}

void OwnNodes::remove_orphan(const std::string& parent, const std::string& node) {
    auto then = when_answered([this, parent, node](Call& c) {
        if (c.rc != ZOK && c.rc != ZNONODE)
            orphans_.push_back({parent, {}, node, boot_clock::now()});
    });
    handle_.remove(parent + "/" + node, std::move(then));
}

}  // namespace holdfast::zookeeper
