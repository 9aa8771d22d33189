#include "own_nodes.hpp"

#include <algorithm>
#include <unordered_set>

#include "client_library.hpp"
#include "errors.hpp"
#include "marks.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {

QueueView& OwnNodes::queues() const {
    return session_.queues();
}

bool OwnNodes::any_held() const {
    return std::any_of(places_.begin(), places_.end(),
                       [](const QueueNodePtr& p) { return p->held(); });
}

void OwnNodes::connected() {
    const auto all = places_;
    std::unordered_set<std::string> synced;
    for (const QueueNodePtr& p : all) {
        p->end_removal_request();
        const bool in_doubt = p->state == QueueNode::State::in_doubt;
        if (in_doubt && synced.insert(p->parent).second) handle_.sync(p->parent);
        if (in_doubt)
            find_node(p);
        else if (p->leaving())
            remove_node(p);
        else if (p->state == QueueNode::State::queued)
            queues().want_list(queues().of(*p));
        else if (p->held() && p->renewed_before)
            watch(p);
    }
    let_in();
}

void OwnNodes::disconnected() {
    for (auto& [parent, verified_parent] : known_parents_)
        verified_parent = {};
    for (const QueueNodePtr& p : places_)
        p->end_watch();
}

void OwnNodes::repeat(boot_clock::time_point now) {
    sweep_orphans(now);
    // Those whose delete was refused as well.
    for (const QueueNodePtr& p : places_)
        if (p->leaving()) remove_node(p);
}

// --- leaving
// ----------------------------------------------------------------------------------------

void OwnNodes::leave(const QueueNodePtr& p, Outcome how) {
    if (p->turn) leave(p->turn, how);
    if (!places_.contains(p)) return;
    p->want_removal();
    p->how = how;
    p->refusal = {};
    switch (p->state) {
        case QueueNode::State::idle:
        case QueueNode::State::enlisted:
            return end_place(p, QueueNode::State::gone, {});
        case QueueNode::State::creating:
        case QueueNode::State::in_doubt:
            return;  // its answer, or the look for it, goes on from there
        case QueueNode::State::queued:
        case QueueNode::State::granted:
        case QueueNode::State::withdrawn:
            return remove_node(p);
        case QueueNode::State::removed:
        case QueueNode::State::gone:
        case QueueNode::State::failed:
            return;
    }
}

void OwnNodes::refuse(const QueueNodePtr& p, error_code why) {
    p->why = why;
    p->refused = true;
    leave(p, Outcome::abandoned);
}

void OwnNodes::remove_node(const QueueNodePtr& p) {
    if (p->removal == QueueNode::Removal::requested || p->node.empty() || !handle_.connected())
        return;
    p->removal = QueueNode::Removal::requested;
    if (p->mark_doubt) return find_mark(p);
    // Nobody but a holder is broken, and a break is a word in its node: a deletion that does not
    // meet what was last read finds out.
    const int version = p->state == QueueNode::State::granted ? p->version : -1;
    // What the request said: a downgrade or a watch may change the node before its answer.
    const bool with_mark = p->marked, several = !p->more.empty();
    auto then = when_answered(
        [this, p, with_mark, several](Call& c) { removed(p, c.rc, with_mark, several); });
    if (p->marked) {
        std::optional<std::string> text = mark_left_by(*p);
        handle_.remove_with(p->path(), version, mark_path(shared_.options, p->name),
                            std::move(text), std::move(then));
    } else if (!p->more.empty()) {
        std::vector<std::string> paths = p->nodes();
        for (std::string& node : paths)
            node.insert(0, p->parent + "/");
        handle_.remove_all(paths, std::move(then), version);
    } else {
        handle_.remove(p->path(), std::move(then), version);
    }
}

/// One that nobody takes away says that its holder crashed.
void OwnNodes::find_mark(const QueueNodePtr& p) {
    const std::string path = mark_path(shared_.options, p->name);
    handle_.sync(path);
    handle_.get(path, false, when_answered([this, p](Call& c) {
                    if (!places_.contains(p)) return;
                    p->end_removal_request();
                    if (unanswered(c.rc)) return;
                    p->mark_doubt = false;
                    p->marked = c.rc == ZOK && c.text == mark_of(*p);
                    remove_node(p);
                }));
}

void OwnNodes::removed(const QueueNodePtr& p, int rc, bool with_mark, bool several) {
    if (!places_.contains(p)) return;
    p->end_removal_request();
    if (unanswered(rc)) {
        p->maybe_removed = true;
        return;
    }
    if (rc == ZBADVERSION) return watch(p);
    if (with_mark && rc != ZOK) {
        // One of the two is not there: then the node by itself.
        p->marked = false;
        return remove_node(p);
    }
    if (several && rc == ZNONODE) {
        // One of several is not there: then each by itself.
        forget_permits(*p);
        return remove_node(p);
    }
    p->refusal = {};
    if (rc != ZOK && rc != ZNONODE) {
        p->refusal = from_rc(rc);
        p->gate.open();
        return;
    }
    const bool by_us = rc == ZOK || p->maybe_removed;
    note_clear(*p);
    if (Queue* const q = queues().find(p->parent))
        for (const std::string& node : p->nodes()) {
            const Queue::Entry* e = q->find(node);
            if (e != nullptr && e->own == p) queues().vanished(*q, node);
        }
    end_place(p, by_us ? QueueNode::State::removed : QueueNode::State::gone, p->why);
}

void OwnNodes::lose_place(const QueueNodePtr& p, error_code why) {
    const bool held = p->held();
    end_place(p, QueueNode::State::gone, why);
    if (held)
        shared_.events->lost(p->owner, why);
    else
        shared_.events->wake(p->owner);
}

void OwnNodes::end_all(error_code why) {
    const auto all = places_;
    for (const QueueNodePtr& p : all) {
        const bool lost = p->held();
        const bool waits = p->waits();
        end_place(p, QueueNode::State::gone, why);
        if (lost) shared_.events->lost(p->owner, why);
        if (waits) shared_.events->wake(p->owner);
    }
}

void OwnNodes::give_up_waiting() {
    const auto all = places_;
    for (const QueueNodePtr& p : all) {
        if (p->state == QueueNode::State::granted || p->leaving()) continue;
        leave(p, Outcome::abandoned);
        p->gate.open();
        shared_.events->wake(p->owner);
    }
}

void OwnNodes::forget_permits(QueueNode& p) {
    for (const std::string& node : std::exchange(p.more, {})) {
        remove_orphan(p.parent, node);
        if (Queue* const q = queues().find(p.parent)) q->remove(node);
    }
}

void OwnNodes::expire(boot_clock::time_point now) {
    std::vector<QueueNodePtr> expired;
    for (const QueueNodePtr& p : places_)
        if (p->held() && now > p->expires + p->lock_delay) expired.push_back(p);
    for (const QueueNodePtr& p : expired) {
        p->why = make_error_code(p->revoked() ? errc::revoked : errc::lost);
        p->lapse();
        leave(p, Outcome::abandoned);
    }
}

// --- one's own node, watched
// ------------------------------------------------------------------------------

void OwnNodes::watch(const QueueNodePtr& p) {
    if (p->watch == QueueNode::Watch::asked || !handle_.connected() || p->node.empty()) return;
    p->watch = QueueNode::Watch::asked;
    p->watch_asked = boot_clock::now();
    ++reading_;
    handle_.get(p->path(), true, when_answered([this, p](Call& c) { seen(p, c); }));
}

void OwnNodes::seen(const QueueNodePtr& p, Call& c) {
    p->watch = c.rc == ZOK ? QueueNode::Watch::set : QueueNode::Watch::none;
    if (c.rc == ZNONODE) changed(p, true);
    p->refusal = {};
    if (c.rc != ZOK && c.rc != ZNONODE && !unanswered(c.rc)) {
        p->version = -1;  // what it says cannot be read
        if (!p->leaving()) p->refusal = from_rc(c.rc);
    }
    if (c.rc == ZOK) {
        p->version = c.version;
        const auto data = read_data(c.text);
        if (data && data->revoked && p->revoke() && p->held())
            shared_.events->lost(p->owner, make_error_code(errc::revoked));
        const bool wanted = (data && data->asked) || c.text == curator_revoke;
        if (wanted && !std::exchange(p->wanted_back, true) && p->held())
            shared_.events->asked(p->owner);
        if (c.text == curator_revoke && !p->leaving()) restore(*p);
        if (data && data->shared && !p->reads()) downgraded(p);
    }
    if (p->leaving() && places_.contains(p)) remove_node(p);
    // Each opening makes every renewal under way look again, and after an outage there are as many
    // answers as renewals. Those that have theirs before the last one wait for a heartbeat anyway.
    if (--reading_ == 0) shared_.beats.open();
}

void OwnNodes::restore(const QueueNode& p) {
    // Curator's word took the place of ours: who it is, and how it holds it. Its Revoker writes to
    // each node of several, and only the first is watched.
    const std::string data = data_of(p, p.reads());
    handle_.set(p.path(), data, p.version);
    for (const std::string& node : p.more)
        handle_.set(p.parent + "/" + node, data);
}

void OwnNodes::downgrade(const QueueNodePtr& p) {
    if (p->access != QueueNode::Access::writes || p->leaving() || !handle_.connected()) return;
    p->access = QueueNode::Access::downgrading;
    auto then = when_answered([this, p](Call& c) {
        p->end_downgrade_request();
        if (c.rc == ZOK) {
            if (p->version >= 0) ++p->version;
            downgraded(p);
        } else if (!unanswered(c.rc)) {
            p->refusal = from_rc(c.rc);
        }
        // A mark that is not there any more: then without it, with the renewal that waits.
        if (c.rc == ZNONODE) p->marked = false;
        // Somebody has written to it meanwhile: the watch brings what.
        if (c.rc == ZBADVERSION) changed(p, false);
        shared_.beats.open();
    });
    std::string data = data_of(*p, true);
    if (p->marked)
        // The next holder learns that the writer has released.
        handle_.remove_with(mark_path(shared_.options, p->name), -1, p->path(), std::move(data),
                            std::move(then), p->version);
    else
        handle_.set(p->path(), data, p->version, std::move(then));
}

void OwnNodes::downgraded(const QueueNodePtr& p) {
    p->access = QueueNode::Access::reads;
    p->marked = false;
    if (Queue* const q = queues().find(p->parent)) queues().downgraded(*q, p->node);
}

void OwnNodes::changed(const QueueNodePtr& p, bool deleted) {
    if (p->leaving() || !places_.contains(p)) return;
    if (!deleted) {
        p->end_watch();
        return watch(p);
    }
    forget_permits(*p);
    if (Queue* const q = queues().find(p->parent)) queues().vanished(*q, p->node);
    lose_place(p, p->revoked() ? make_error_code(errc::revoked) : make(Error::node_gone));
}

}  // namespace holdfast::zookeeper
