// What a Session learns of those that stand ahead of its places in line, and whom it lets in.
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

void Session::see_to_lines() {
    for (auto at = lines_.begin(); at != lines_.end();) {
        Line& l = at->second;
        if (!l.doubtful.empty() && l.sent == l.answered) want_list(l);
        at = l.unused() ? lines_.erase(at) : std::next(at);
    }
}

void Session::want_list(Line& l) {
    if (l.sent > l.answered) {
        l.wanted = true;
        return;
    }
    l.wanted = false;
    const std::uint64_t number = ++l.sent;
    auto then = [weak = weak_from_this(), parent = l.parent(), number](Call& c) {
        if (const auto self = weak.lock()) self->listed(parent, number, c);
    };
    // Whoever waits for permits waits for any of many to vanish.
    handle_->list(l.parent(), std::move(then), l.of_permits());
}

void Session::listed(const std::string& parent, std::uint64_t number, Call& c) {
    const auto at = lines_.find(parent);
    if (over_ || at == lines_.end()) return;
    Line& l = at->second;
    if (unanswered(c.rc) || number <= l.answered) return;
    l.answered = number;
    l.last = boot_clock::now();
    if (c.rc != ZOK && c.rc != ZNONODE) {
        const auto all = places_;
        for (const QueueNodePtr& p : all)
            if (p->parent == parent && p->state == QueueNode::State::queued && !p->listed) {
                refuse_place(p, from_rc(c.rc));
            }
        return;
    }
    const auto vanished_ones = l.apply(c.children, number);
    for (const QueueNodePtr& p : vanished_ones) {
        // Its own request is answered in a moment; of several nodes each is missed.
        if (p->leaving() || !places_.contains(p)) continue;
        const bool lost = p->held();
        forget_permits(*p);
        const error_code why = make(Error::node_gone);
        end_place(p, QueueNode::State::gone, why);
        if (lost)
            shared_->events->lost(p->owner, why);
        else
            shared_->events->wake(p->owner);
    }
    resolve_doubts(l, number, c.children);
    look_along(l);
    if (l.wanted) want_list(l);
}

void Session::children_changed(std::string_view path) {
    const auto at = lines_.find(std::string(path));
    if (at == lines_.end()) return;
    const auto& entries = at->second.entries();
    if (std::any_of(entries.begin(), entries.end(), [](const auto& e) {
            return e.second.own && e.second.own->state == QueueNode::State::queued;
        }))
        want_list(at->second);
}

void Session::look_along_permits(Line& l) {
    std::vector<QueueNodePtr> ready;
    for (const auto& [key, e] : l.entries())
        if (e.own && e.own->node == key.second && e.own->state == QueueNode::State::queued) {
            e.own->gate.open();
            if (l.lets_in(*e.own)) ready.push_back(e.own);
        }
    for (const QueueNodePtr& p : ready)
        shared_->events->wake(p->owner);
}

void Session::look_along(Line& l) {
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
        shared_->events->wake(p->owner);
    for (const std::string& node : unwatched)
        ask_watch(l, node);
}

void Session::ask_watch(Line& l, const std::string& node) {
    Line::Entry* e = l.find(node);
    if (e == nullptr || !to_be_watched(*e)) return;
    e->asking = true;
    handle_->get(l.parent() + "/" + node, true,
                 [weak = weak_from_this(), parent = l.parent(), node](Call& c) {
                     if (const auto self = weak.lock()) self->blocker_seen(parent, node, c);
                 });
}

void Session::blocker_seen(const std::string& parent, const std::string& node, const Call& c) {
    const auto at = lines_.find(parent);
    if (at == lines_.end()) return;
    Line& l = at->second;
    Line::Entry* e = l.find(node);
    if (e == nullptr || e->own) return;
    e->asking = false;
    e->watched = c.rc != ZNONODE && !unanswered(c.rc);
    if (c.rc == ZNONODE) return vanished(l, node);
    if (c.rc != ZOK) return;
    const auto data = read_data(c.text);
    if (data && data->shared) return let_in_behind(l, l.downgrade(node));
    e->foreign = !data;
    for (const auto& [key, other] : l.entries()) {
        if (!other.own || other.own->state != QueueNode::State::queued) continue;
        // Whoever tries once wants to know that it is no reader's.
        if (other.own->reads()) other.own->gate.open();
        if (e->foreign && of_other_recipe(other.recipe, e->recipe))
            shared_->events->wake(other.own->owner);
    }
}

void Session::vanished(Line& l, const std::string& node) {
    let_in_behind(l, l.remove(node));
}

void Session::let_in_behind(Line& l, const std::vector<QueueNodePtr>& behind) {
    if (l.of_permits()) return look_along_permits(l);
    bool unsure = false;
    for (const QueueNodePtr& p : behind) {
        if (!p->waits() || !p->listed) continue;
        const auto* blocker = l.blocker(*p);
        if (blocker == nullptr) {
            p->gate.open();
            shared_->events->wake(p->owner);
        } else if (to_be_watched(blocker->second)) {
            unsure = true;
        }
    }
    // Those further ahead were not watched and may be gone as well: one list says so of all.
    if (unsure) want_list(l);
}

bool Session::lets_in(const QueueNode& p) const {
    const auto at = lines_.find(p.parent);
    return at != lines_.end() && at->second.lets_in(p);
}

bool Session::blocked(const QueueNodePtr& p) {
    const auto at = lines_.find(p->parent);
    if (!p->listed || at == lines_.end()) return false;
    if (p->limit > 0) return !at->second.lets_in(*p);
    const auto* blocker = at->second.blocker(*p);
    if (blocker == nullptr) return false;
    const auto& [key, e] = *blocker;
    if (e.foreign && of_other_recipe(p->recipe, e.recipe)) {
        refuse_place(p, make_error_code(errc::kind_mismatch));
        return false;
    }
    if (!p->reads() || e.own || e.watched) return true;
    // A writer's node, the data of which may say that its holder reads.
    if (to_be_watched(e)) ask_watch(at->second, std::string(key.second));
    return false;
}

bool Session::known_busy(const spi::Attempt& a) const {
    const auto at = lines_.find(parent_path(shared_->options, a.name));
    if (at == lines_.end() || over_ || a.units.permits() || !handle_->connected()) return false;
    const bool reads = a.units.mode == Mode::shared;
    return std::any_of(at->second.entries().begin(), at->second.entries().end(),
                       [&](const auto& entry) {
                           const Line::Entry& e = entry.second;
                           return e.own && !e.own->leaving() && !(reads && e.reads);
                       });
}

void Session::keep_waiting(const QueueNodePtr& p) {
    last_used_ = boot_clock::now();
    const auto at = lines_.find(p->parent);
    if (at == lines_.end() || !handle_->connected()) return;
    Line& l = at->second;
    // The watch notifies; this is for what no rule foresaw. Long lists are looked at less often.
    const auto pace =
        std::max(milliseconds(1000), milliseconds(static_cast<long long>(l.entries().size())));
    if (boot_clock::now() >= l.last + pace) want_list(l);
}

}  // namespace holdfast::zookeeper
