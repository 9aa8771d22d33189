#include "queue_view.hpp"

#include <algorithm>

#include "client_library.hpp"
#include "errors.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {
namespace {

bool to_be_watched(const Queue::Entry& e) {
    return !e.own && !e.watched && !e.asking;
}

}  // namespace

Queue& QueueView::of(const QueueNode& p) {
    return queues_.try_emplace(p.parent, p.parent, p.limit > 0).first->second;
}

Queue* QueueView::find(const std::string& parent) {
    const auto at = queues_.find(parent);
    return at == queues_.end() ? nullptr : &at->second;
}

const Queue* QueueView::find(const std::string& parent) const {
    const auto at = queues_.find(parent);
    return at == queues_.end() ? nullptr : &at->second;
}

void QueueView::connected() {
    for (auto& [parent, q] : queues_) {
        q.answered = q.sent;
        q.wanted = false;
    }
}

void QueueView::disconnected() {
    for (auto& [parent, q] : queues_)
        q.unwatch();
}

// --- lists
// ---------------------------------------------------------------------------------------

void QueueView::tidy() {
    for (auto at = queues_.begin(); at != queues_.end();) {
        Queue& q = at->second;
        if (!q.doubtful.empty() && q.sent == q.answered) want_list(q);
        at = q.unused() ? queues_.erase(at) : std::next(at);
    }
}

void QueueView::want_list(Queue& q) {
    if (q.sent > q.answered) {
        q.wanted = true;
        return;
    }
    q.wanted = false;
    const std::uint64_t number = ++q.sent;
    auto then =
        when_answered([this, parent = q.parent(), number](Call& c) { listed(parent, number, c); });
    // A waiter for permits waits for any of many nodes to vanish.
    handle_.list(q.parent(), std::move(then), q.of_permits());
}

void QueueView::listed(const std::string& parent, std::uint64_t number, Call& c) {
    Queue* const found = find(parent);
    if (session_.over() || found == nullptr) return;
    Queue& q = *found;
    if (unanswered(c.rc) || number <= q.answered) return;
    q.answered = number;
    q.last = boot_clock::now();
    if (c.rc != ZOK && c.rc != ZNONODE) return list_refused(parent, from_rc(c.rc));
    // Its own request is answered in a moment; of several nodes each is missed.
    for (const QueueNodePtr& p : q.apply(c.children, number))
        if (!p->leaving() && session_.own().contains(p)) {
            session_.own().forget_permits(*p);
            session_.own().lose_place(p, make(Error::node_gone));
        }
    session_.own().resolve_doubts(q, number, c.children);
    refresh(q);
    if (q.wanted) want_list(q);
}

void QueueView::list_refused(const std::string& parent, error_code why) {
    const auto all = session_.own().all();
    for (const QueueNodePtr& p : all)
        if (p->parent == parent && p->state == QueueNode::State::queued && !p->listed)
            session_.own().refuse(p, why);
}

void QueueView::children_changed(std::string_view path) {
    Queue* const q = find(std::string(path));
    if (q == nullptr) return;
    const auto& entries = q->entries();
    if (std::any_of(entries.begin(), entries.end(), [](const auto& e) {
            return e.second.own && e.second.own->state == QueueNode::State::queued;
        }))
        want_list(*q);
}

void QueueView::changed(const std::string& parent, const std::string& node, bool deleted) {
    Queue* const q = find(parent);
    Queue::Entry* const e = q == nullptr ? nullptr : q->find(node);
    if (e == nullptr) return;
    if (e->own) return session_.own().changed(QueueNodePtr(e->own), deleted);
    if (deleted) return vanished(*q, node);
    e->watched = false;
    refresh(*q);
}

void QueueView::refresh_permits(Queue& q) {
    std::vector<QueueNodePtr> ready;
    for (const auto& [key, e] : q.entries())
        if (e.own && e.own->node == key.second && e.own->state == QueueNode::State::queued) {
            e.own->gate.open();
            if (q.lets_in(*e.own)) ready.push_back(e.own);
        }
    for (const QueueNodePtr& p : ready)
        shared_.events->wake(p->owner);
}

void QueueView::refresh(Queue& q) {
    if (q.of_permits()) return refresh_permits(q);
    std::vector<QueueNodePtr> ready;
    std::vector<std::string> unwatched;
    const Queue::Entries::value_type* ahead = nullptr;
    const Queue::Entries::value_type* writer = nullptr;  // the last one ahead
    for (const auto& entry : q.entries()) {
        const auto& [key, e] = entry;
        if (e.own && e.own->waits()) {
            const auto* before = e.own->reads() ? writer : ahead;
            e.own->gate.open();
            if (before == nullptr && e.own->listed)
                ready.push_back(e.own);
            else if (before != nullptr && to_be_watched(before->second))
                unwatched.push_back(before->first.second);
        }
        ahead = &entry;
        if (!e.reads) writer = &entry;
    }
    for (const QueueNodePtr& p : ready)
        shared_.events->wake(p->owner);
    for (const std::string& node : unwatched)
        ask_watch(q, node);
}

void QueueView::ask_watch(Queue& q, const std::string& node) {
    Queue::Entry* e = q.find(node);
    if (e == nullptr || !to_be_watched(*e)) return;
    e->asking = true;
    handle_.get(q.parent() + "/" + node, true,
                when_answered(
                    [this, parent = q.parent(), node](Call& c) { blocker_seen(parent, node, c); }));
}

void QueueView::blocker_seen(const std::string& parent, const std::string& node, const Call& c) {
    Queue* const found = find(parent);
    if (found == nullptr) return;
    Queue& q = *found;
    Queue::Entry* e = q.find(node);
    if (e == nullptr || e->own) return;
    e->asking = false;
    e->watched = c.rc != ZNONODE && !unanswered(c.rc);
    if (c.rc == ZNONODE) return vanished(q, node);
    if (c.rc != ZOK) return;
    const auto data = read_data(c.text);
    e->foreign = !data;
    if (data && data->shared) return downgraded(q, node);
    for (const auto& [key, other] : q.entries()) {
        if (!other.own || other.own->state != QueueNode::State::queued) continue;
        // An attempt that does not wait has to learn that it is no reader's.
        if (other.own->reads()) other.own->gate.open();
        if (!data && of_other_recipe(other.recipe, e->recipe))
            shared_.events->wake(other.own->owner);
    }
}

void QueueView::vanished(Queue& q, const std::string& node) {
    // It blocks until a list says who is there.
    if (const Queue::Entry* e = q.find(node); e != nullptr && e->may_leave_reader())
        return want_list(q);
    let_in_behind(q, q.remove(node));
}

void QueueView::downgraded(Queue& q, const std::string& node) {
    let_in_behind(q, q.downgrade(node));
}

void QueueView::let_in_behind(Queue& q, const std::vector<QueueNodePtr>& behind) {
    if (q.of_permits()) return refresh_permits(q);
    bool unsure = false;
    for (const QueueNodePtr& p : behind) {
        if (!p->waits() || !p->listed) continue;
        const auto* blocker = q.blocker(*p);
        if (blocker == nullptr) {
            p->gate.open();
            shared_.events->wake(p->owner);
        } else if (to_be_watched(blocker->second)) {
            unsure = true;
        }
    }
    // Those further ahead were not watched and may be gone as well: one list says so of all.
    if (unsure) want_list(q);
}

bool QueueView::lets_in(const QueueNode& p) const {
    const Queue* const q = find(p.parent);
    return q != nullptr && q->lets_in(p);
}

bool QueueView::blocked(const QueueNodePtr& p) {
    Queue* const q = find(p->parent);
    if (!p->listed || q == nullptr) return false;
    if (p->limit > 0) return !q->lets_in(*p);
    const auto* blocker = q->blocker(*p);
    if (blocker == nullptr) return false;
    const auto& [key, e] = *blocker;
    if (e.foreign.value_or(false) && of_other_recipe(p->recipe, e.recipe)) {
        session_.own().refuse(p, make_error_code(errc::kind_mismatch));
        return false;
    }
    if (!p->reads() || e.own || e.watched) return true;
    // A writer's node, the data of which may say that its holder reads.
    if (to_be_watched(e)) ask_watch(*q, std::string(key.second));
    return false;
}

bool QueueView::known_busy(const spi::Attempt& a) const {
    const Queue* const q = find(parent_path(shared_.options, a.name));
    if (q == nullptr || session_.over() || a.units.permits() || !handle_.connected()) return false;
    const bool reads = a.units.mode == Mode::shared;
    return std::any_of(q->entries().begin(), q->entries().end(), [&](const auto& entry) {
        const Queue::Entry& e = entry.second;
        return e.own && !e.own->leaving() && !(reads && e.reads);
    });
}

void QueueView::keep_waiting(const QueueNodePtr& p) {
    session_.touch();
    Queue* const found = find(p->parent);
    if (found == nullptr || !handle_.connected()) return;
    Queue& q = *found;
    // The watch notifies; this is for what no rule foresaw. Long lists are looked at less often.
    const auto pace =
        std::max(milliseconds(1000), milliseconds(static_cast<long long>(q.entries().size())));
    if (boot_clock::now() >= q.last + pace) want_list(q);
}

}  // namespace holdfast::zookeeper
