#include "queue_view.hpp"

#include <algorithm>

#include "client_library.hpp"
#include "errors.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {
namespace {

bool to_be_watched(const Line::Entry& e) {
    return !e.own && !e.watched && !e.asking;
}

}  // namespace

Line& QueueView::line(const QueueNode& p) {
    return lines_.try_emplace(p.parent, p.parent, p.limit > 0).first->second;
}

Line* QueueView::find(const std::string& parent) {
    const auto at = lines_.find(parent);
    return at == lines_.end() ? nullptr : &at->second;
}

const Line* QueueView::find(const std::string& parent) const {
    const auto at = lines_.find(parent);
    return at == lines_.end() ? nullptr : &at->second;
}

void QueueView::connected() {
    for (auto& [parent, l] : lines_) {
        l.answered = l.sent;
        l.wanted = false;
    }
}

void QueueView::disconnected() {
    for (auto& [parent, l] : lines_)
        l.unwatch();
}

// --- lists
// ---------------------------------------------------------------------------------------

void QueueView::see_to_lines() {
    for (auto at = lines_.begin(); at != lines_.end();) {
        Line& l = at->second;
        if (!l.doubtful.empty() && l.sent == l.answered) want_list(l);
        at = l.unused() ? lines_.erase(at) : std::next(at);
    }
}

void QueueView::want_list(Line& l) {
    if (l.sent > l.answered) {
        l.wanted = true;
        return;
    }
    l.wanted = false;
    const std::uint64_t number = ++l.sent;
    auto then =
        when_answered([this, parent = l.parent(), number](Call& c) { listed(parent, number, c); });
    // Whoever waits for permits waits for any of many to vanish.
    handle_.list(l.parent(), std::move(then), l.of_permits());
}

void QueueView::listed(const std::string& parent, std::uint64_t number, Call& c) {
    Line* const found = find(parent);
    if (session_.over() || found == nullptr) return;
    Line& l = *found;
    if (unanswered(c.rc) || number <= l.answered) return;
    l.answered = number;
    l.last = boot_clock::now();
    if (c.rc != ZOK && c.rc != ZNONODE) return list_refused(parent, from_rc(c.rc));
    // Its own request is answered in a moment; of several nodes each is missed.
    for (const QueueNodePtr& p : l.apply(c.children, number))
        if (!p->leaving() && session_.own().contains(p)) {
            session_.own().forget_permits(*p);
            session_.own().lose_place(p, make(Error::node_gone));
        }
    session_.own().resolve_doubts(l, number, c.children);
    look_along(l);
    if (l.wanted) want_list(l);
}

void QueueView::list_refused(const std::string& parent, error_code why) {
    const auto all = session_.own().all();
    for (const QueueNodePtr& p : all)
        if (p->parent == parent && p->state == QueueNode::State::queued && !p->listed)
            session_.own().refuse(p, why);
}

void QueueView::children_changed(std::string_view path) {
    Line* const l = find(std::string(path));
    if (l == nullptr) return;
    const auto& entries = l->entries();
    if (std::any_of(entries.begin(), entries.end(), [](const auto& e) {
            return e.second.own && e.second.own->state == QueueNode::State::queued;
        }))
        want_list(*l);
}

void QueueView::changed(const std::string& parent, const std::string& node, bool deleted) {
    Line* const l = find(parent);
    Line::Entry* const e = l == nullptr ? nullptr : l->find(node);
    if (e == nullptr) return;
    if (e->own) return session_.own().changed(QueueNodePtr(e->own), deleted);
    if (deleted) return vanished(*l, node);
    e->watched = false;
    look_along(*l);
}

void QueueView::look_along_permits(Line& l) {
    std::vector<QueueNodePtr> ready;
    for (const auto& [key, e] : l.entries())
        if (e.own && e.own->node == key.second && e.own->state == QueueNode::State::queued) {
            e.own->gate.open();
            if (l.lets_in(*e.own)) ready.push_back(e.own);
        }
    for (const QueueNodePtr& p : ready)
        shared_.events->wake(p->owner);
}

void QueueView::look_along(Line& l) {
    if (l.of_permits()) return look_along_permits(l);
    std::vector<QueueNodePtr> ready;
    std::vector<std::string> unwatched;
    const Line::Entries::value_type* ahead = nullptr;
    const Line::Entries::value_type* writer = nullptr;  // the last one ahead
    for (const auto& entry : l.entries()) {
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
        ask_watch(l, node);
}

void QueueView::ask_watch(Line& l, const std::string& node) {
    Line::Entry* e = l.find(node);
    if (e == nullptr || !to_be_watched(*e)) return;
    e->asking = true;
    handle_.get(l.parent() + "/" + node, true,
                when_answered(
                    [this, parent = l.parent(), node](Call& c) { blocker_seen(parent, node, c); }));
}

void QueueView::blocker_seen(const std::string& parent, const std::string& node, const Call& c) {
    Line* const found = find(parent);
    if (found == nullptr) return;
    Line& l = *found;
    Line::Entry* e = l.find(node);
    if (e == nullptr || e->own) return;
    e->asking = false;
    e->watched = c.rc != ZNONODE && !unanswered(c.rc);
    if (c.rc == ZNONODE) return vanished(l, node);
    if (c.rc != ZOK) return;
    const auto data = read_data(c.text);
    if (data && data->shared) return downgraded(l, node);
    e->foreign = !data;
    for (const auto& [key, other] : l.entries()) {
        if (!other.own || other.own->state != QueueNode::State::queued) continue;
        // Whoever tries once wants to know that it is no reader's.
        if (other.own->reads()) other.own->gate.open();
        if (e->foreign && of_other_recipe(other.recipe, e->recipe))
            shared_.events->wake(other.own->owner);
    }
}

void QueueView::vanished(Line& l, const std::string& node) {
    let_in_behind(l, l.remove(node));
}

void QueueView::downgraded(Line& l, const std::string& node) {
    let_in_behind(l, l.downgrade(node));
}

void QueueView::let_in_behind(Line& l, const std::vector<QueueNodePtr>& behind) {
    if (l.of_permits()) return look_along_permits(l);
    bool unsure = false;
    for (const QueueNodePtr& p : behind) {
        if (!p->waits() || !p->listed) continue;
        const auto* blocker = l.blocker(*p);
        if (blocker == nullptr) {
            p->gate.open();
            shared_.events->wake(p->owner);
        } else if (to_be_watched(blocker->second)) {
            unsure = true;
        }
    }
    // Those further ahead were not watched and may be gone as well: one list says so of all.
    if (unsure) want_list(l);
}

bool QueueView::lets_in(const QueueNode& p) const {
    const Line* const l = find(p.parent);
    return l != nullptr && l->lets_in(p);
}

bool QueueView::blocked(const QueueNodePtr& p) {
    Line* const l = find(p->parent);
    if (!p->listed || l == nullptr) return false;
    if (p->limit > 0) return !l->lets_in(*p);
    const auto* blocker = l->blocker(*p);
    if (blocker == nullptr) return false;
    const auto& [key, e] = *blocker;
    if (e.foreign && of_other_recipe(p->recipe, e.recipe)) {
        session_.own().refuse(p, make_error_code(errc::kind_mismatch));
        return false;
    }
    if (!p->reads() || e.own || e.watched) return true;
    // A writer's node, the data of which may say that its holder reads.
    if (to_be_watched(e)) ask_watch(*l, std::string(key.second));
    return false;
}

bool QueueView::known_busy(const spi::Attempt& a) const {
    const Line* const l = find(parent_path(shared_.options, a.name));
    if (l == nullptr || session_.over() || a.units.permits() || !handle_.connected()) return false;
    const bool reads = a.units.mode == Mode::shared;
    return std::any_of(l->entries().begin(), l->entries().end(), [&](const auto& entry) {
        const Line::Entry& e = entry.second;
        return e.own && !e.own->leaving() && !(reads && e.reads);
    });
}

void QueueView::keep_waiting(const QueueNodePtr& p) {
    session_.touch();
    Line* const found = find(p->parent);
    if (found == nullptr || !handle_.connected()) return;
    Line& l = *found;
    // The watch notifies; this is for what no rule foresaw. Long lists are looked at less often.
    const auto pace =
        std::max(milliseconds(1000), milliseconds(static_cast<long long>(l.entries().size())));
    if (boot_clock::now() >= l.last + pace) want_list(l);
}

}  // namespace holdfast::zookeeper
