// What a Session does for the places in line that live in it.
#include <algorithm>

#include "client_library.hpp"
#include "errors.hpp"
#include "marks.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr std::size_t most_parents = 20'000;
constexpr int most_tries = 5;
/// Nodes asked for at once. A server answers them, each with what goes with it, in half a second.
constexpr std::size_t most_asking = 1024;

}  // namespace

Line& Session::line(const std::string& parent) {
    return lines_.try_emplace(parent, parent).first->second;
}

QueueNodePtr Session::make_place(std::string_view name, std::string_view owner, milliseconds ttl) {
    auto p = std::make_shared<QueueNode>();
    const Options& o = shared_->options;
    p->session = weak_from_this();
    p->name = name;
    p->owner = owner;
    p->parent = parent_path(o, name);
    p->guid = make_guid();
    p->ttl = ttl;
    places_.insert(p);
    ++line(p->parent).places;
    last_used_ = boot_clock::now();
    return p;
}

void Session::end_place(const QueueNodePtr& p, QueueNode::State state, error_code why) {
    if (places_.erase(p) == 0) return;
    const auto at = lines_.find(p->parent);
    if (at != lines_.end()) --at->second.places;
    p->state = state;
    p->why = why;
    last_used_ = boot_clock::now();
    p->gate.open();
    if (p->told) shared_->beats.open();
    give_room(*p);
}

// --- a node of one's own
// --------------------------------------------------------------------------------

void Session::enter(const QueueNodePtr& p) {
    if (p->state != QueueNode::State::idle || std::exchange(p->enlisted, true)) return;
    entering_.push_back(p);
    let_in();
}

void Session::let_in() {
    while (!over_ && !refused_ && handle_->connected() && asking_ < most_asking &&
           !entering_.empty()) {
        const QueueNodePtr p = std::move(entering_.front());
        entering_.pop_front();
        if (p->state != QueueNode::State::idle) continue;  // gone again
        p->asking = true;
        ++asking_;
        p->asked = asked_last_ = boot_clock::now();
        create_node(p);
    }
}

void Session::give_room(QueueNode& p) {
    if (!std::exchange(p.asking, false)) return;
    --asking_;
    let_in();
}

void Session::create_parents(const std::string& parent) {
    if (known_parents_.size() >= most_parents) known_parents_.clear();
    known_parents_.insert_or_assign(parent, VerifiedParent{});
    const bool container = shared_->options.containers && has_containers_;
    handle_->create(parent, {}, container ? Handle::Kind::container : Handle::Kind::persistent,
                    [weak = weak_from_this(), parent, container](Call& c) {
                        const auto self = weak.lock();
                        if (!self || !container) return;
                        if (c.rc != ZUNIMPLEMENTED && c.rc != ZBADARGUMENTS) return;
                        self->has_containers_ = false;
                        self->known_parents_.erase(parent);
                    });
}

void Session::watch_parent(const std::string& parent) {
    known_parents_[parent].asked = true;
    handle_->get(parent, true, [weak = weak_from_this(), parent](Call& c) {
        const auto self = weak.lock();
        if (!self || !self->known_parents_.contains(parent)) return;
        VerifiedParent& verified_parent = self->known_parents_[parent];
        verified_parent = {};
        if (c.rc == ZOK) verified_parent.life = ++self->lives_;
    });
}

void Session::create_node(const QueueNodePtr& p) {
    p->state = QueueNode::State::creating;
    p->in_doubt = false;
    if (p->tries > 0) create_base();
    const auto known = known_parents_.find(p->parent);
    p->foreseen = known != known_parents_.end() && known->second.clear;
    if (known == known_parents_.end())
        create_parents(p->parent);
    else if (known->second.life == 0 && !known->second.asked)
        watch_parent(p->parent);  // it is used again
    // No longer than the servers keep it.
    const milliseconds ttl = std::min(p->ttl, handle_->timeout());
    const std::string data = write_data({p->owner, ttl.count(), false});
    handle_->create(p->parent + "/" + node_prefix(p->guid), data, Handle::Kind::sequential,
                    [weak = weak_from_this(), p](Call& c) {
                        if (const auto self = weak.lock()) self->created(p, c);
                    });
    // In the same round trip: what it answers includes the node.
    Line& l = line(p->parent);
    p->list = l.sent + 1;
    if (!p->foreseen) want_list(l);
}

void Session::find_rank(const QueueNodePtr& p) {
    const auto known = known_parents_.find(p->parent);
    const VerifiedParent verified_parent =
        known == known_parents_.end() ? VerifiedParent{} : known->second;
    p->verified_parent = verified_parent.life;
    if (!p->foreseen) return;  // its list is on the way
    Line& l = line(p->parent);
    const auto sequence = sequence_of(p->node);
    if (sequence && verified_parent.clear && *sequence == *verified_parent.clear + 1 &&
        l.entries().begin()->first == p->key) {
        p->listed = true;
        p->gate.open();
    } else if (l.sent < p->list) {
        want_list(l);
    }
}

void Session::note_clear(const QueueNode& p) {
    // It was the first, so all before it were gone. Where others stand in line the next one would
    // not be the first, and had better ask for the list at once.
    if (p.verified_parent == 0 || p.waited || !first(p)) return;
    const auto known = known_parents_.find(p.parent);
    const auto sequence = sequence_of(p.node);
    if (known == known_parents_.end() || known->second.life != p.verified_parent || !sequence)
        return;
    known->second.clear = *sequence;
}

bool Session::stands(const QueueNodePtr& p, std::string node, std::int64_t czxid) {
    p->node = std::move(node);
    p->czxid = czxid;
    p->state = QueueNode::State::queued;
    give_room(*p);
    if (const auto sequence = sequence_of(p->node); sequence && is_unique(*sequence)) {
        line(p->parent).add(p);
        return true;
    }
    p->why = make(Error::used_up);
    p->refused = true;
    leave(p, Outcome::abandoned);
    return false;
}

void Session::created(const QueueNodePtr& p, Call& c) {
    if (p->state != QueueNode::State::creating) return;
    if (c.rc == ZOK) {
        if (!stands(p, c.text.substr(c.text.rfind('/') + 1), c.czxid)) return;
        find_rank(p);
        if (p->leaving) remove_node(p);
        return;
    }
    if (unanswered(c.rc)) {
        // With no connection the request was not even sent; a look shows which of the two it was.
        p->in_doubt = true;
        if (!handle_->connected()) return;
        handle_->sync(p->parent);
        look_for(p);
        return;
    }
    if (p->leaving) return end_place(p, QueueNode::State::gone, {});
    if (c.rc == ZNONODE && p->tries++ < most_tries) {
        known_parents_.erase(p->parent);
        return create_node(p);
    }
    end_place(p, QueueNode::State::failed, from_rc(c.rc));
}

// --- the line
// ---------------------------------------------------------------------------------------

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
    handle_->list(l.parent(), [weak = weak_from_this(), parent = l.parent(), number](Call& c) {
        if (const auto self = weak.lock()) self->listed(parent, number, c);
    });
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
                p->why = from_rc(c.rc);
                p->refused = true;
                leave(p, Outcome::abandoned);
            }
        return;
    }
    const auto vanished_ones = l.apply(c.children, number);
    for (const QueueNodePtr& p : vanished_ones) {
        if (p->leaving) continue;  // its own request is answered in a moment
        const bool lost = p->told;
        end_place(p, QueueNode::State::gone, make_error_code(errc::lost));
        if (lost)
            shared_->events->lost(p->owner, make_error_code(errc::lost));
        else
            shared_->events->wake(p->owner);
    }
    resolve_doubts(l, number, c.children);
    look_along(l);
    if (l.wanted) want_list(l);
}

void Session::look_along(Line& l) {
    const Line::Entry* ahead = nullptr;
    std::vector<std::int64_t> unwatched;
    std::int64_t ahead_key = 0;
    for (const auto& [key, e] : l.entries()) {
        if (e.own && e.own->state == QueueNode::State::queued && !e.own->leaving) {
            e.own->gate.open();
            if (ahead == nullptr && e.own->listed)
                shared_->events->wake(e.own->owner);
            else if (ahead != nullptr && !ahead->own && !ahead->watched && !ahead->asking)
                unwatched.push_back(ahead_key);
        }
        ahead = &e;
        ahead_key = key;
    }
    for (const std::int64_t key : unwatched)
        if (Line::Entry* e = l.find(key)) ask_watch(l, key, *e);
}

void Session::ask_watch(Line& l, std::int64_t key, Line::Entry& e) {
    e.asking = true;
    handle_->get(l.parent() + "/" + e.node, true,
                 [weak = weak_from_this(), parent = l.parent(), key, node = e.node](Call& c) {
                     const auto self = weak.lock();
                     if (!self) return;
                     const auto at = self->lines_.find(parent);
                     if (at == self->lines_.end()) return;
                     Line::Entry* entry = at->second.find(key);
                     if (entry == nullptr || entry->node != node) return;
                     entry->asking = false;
                     entry->watched = c.rc == ZOK;
                     if (c.rc == ZNONODE) self->vanished(at->second, key);
                 });
}

void Session::vanished(Line& l, std::int64_t key) {
    Line::Entry* next = l.remove(key);
    if (next == nullptr || !next->own) return;
    const QueueNodePtr p = next->own;
    if (p->state != QueueNode::State::queued || p->leaving || !p->listed) return;
    if (l.first(*p)) {
        p->gate.open();
        shared_->events->wake(p->owner);
        return;
    }
    // Those further ahead were not watched and may be gone as well: one list says so of all.
    const Line::Entry* ahead = l.ahead(p->key);
    if (ahead != nullptr && !ahead->own && !ahead->watched && !ahead->asking) want_list(l);
}

bool Session::first(const QueueNode& p) const {
    const auto at = lines_.find(p.parent);
    return at != lines_.end() && at->second.first(p);
}

bool Session::known_busy(std::string_view name) const {
    const auto at = lines_.find(parent_path(shared_->options, name));
    if (at == lines_.end() || over_ || !handle_->connected()) return false;
    return std::any_of(at->second.entries().begin(), at->second.entries().end(),
                       [](const auto& e) { return e.second.own && !e.second.own->leaving; });
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

// --- leaving
// ----------------------------------------------------------------------------------------

void Session::leave(const QueueNodePtr& p, Outcome how) {
    if (!places_.contains(p)) return;
    p->leaving = true;
    p->how = how;
    switch (p->state) {
        case QueueNode::State::idle:
            return end_place(p, QueueNode::State::gone, {});
        case QueueNode::State::creating:
            return;  // its answer, or the look for it, goes on from there
        case QueueNode::State::queued:
        case QueueNode::State::granted:
            return remove_node(p);
        case QueueNode::State::gone:
        case QueueNode::State::failed:
            return;
    }
}

void Session::remove_node(const QueueNodePtr& p) {
    if (p->removing || p->node.empty() || !handle_->connected()) return;
    p->removing = true;
    auto then = [weak = weak_from_this(), p](Call& c) {
        if (const auto self = weak.lock()) self->removed(p, c.rc);
    };
    if (p->marked) {
        std::optional<std::string> text = mark_left_by(*p);
        handle_->remove_with(p->path(), mark_path(p->name), std::move(text), std::move(then));
    } else {
        handle_->remove(p->path(), std::move(then));
    }
}

void Session::removed(const QueueNodePtr& p, int rc) {
    if (!places_.contains(p)) return;
    p->removing = false;
    if (unanswered(rc)) {
        p->maybe_removed = true;
        return;
    }
    if (p->marked && rc != ZOK) {
        // One of the two is not there: then the node by itself.
        p->marked = false;
        return remove_node(p);
    }
    if (rc != ZOK && rc != ZNONODE) {
        p->why = from_rc(rc);
        p->gate.open();
        return;
    }
    p->was_removed = rc == ZOK || p->maybe_removed;
    note_clear(*p);
    const auto at = lines_.find(p->parent);
    const Line::Entry* e = at == lines_.end() ? nullptr : at->second.find(p->key);
    if (e != nullptr && e->own == p) vanished(at->second, p->key);
    end_place(p, QueueNode::State::gone, p->why);
}

void Session::expire_places(boot_clock::time_point now) {
    std::vector<QueueNodePtr> expired;
    for (const QueueNodePtr& p : places_)
        if (p->told && !p->leaving && now > p->expires) expired.push_back(p);
    for (const QueueNodePtr& p : expired) {
        p->why = make_error_code(p->revoked ? errc::revoked : errc::lost);
        leave(p, Outcome::abandoned);
    }
}

// --- one's own node, watched
// ------------------------------------------------------------------------------

void Session::watch_own(const QueueNodePtr& p) {
    if (p->watching || !handle_->connected() || p->node.empty()) return;
    p->watching = true;
    handle_->get(p->path(), true, [weak = weak_from_this(), p](Call& c) {
        if (const auto self = weak.lock()) self->own_seen(p, c);
    });
}

void Session::own_seen(const QueueNodePtr& p, Call& c) {
    p->watching = false;
    if (c.rc == ZNONODE) own_changed(p, true);
    if (c.rc == ZOK) {
        p->watched = true;
        const auto data = read_data(c.text);
        if (data && data->revoked && !std::exchange(p->revoked, true) && p->told && !p->leaving)
            shared_->events->lost(p->owner, make_error_code(errc::revoked));
    }
    shared_->beats.open();
}

void Session::own_changed(const QueueNodePtr& p, bool deleted) {
    if (p->leaving || !places_.contains(p)) return;
    if (!deleted) {
        p->watched = false;
        return watch_own(p);
    }
    const bool told = p->told;
    const auto at = lines_.find(p->parent);
    if (at != lines_.end()) vanished(at->second, p->key);
    const error_code why = make_error_code(p->revoked ? errc::revoked : errc::lost);
    end_place(p, QueueNode::State::gone, why);
    if (told)
        shared_->events->lost(p->owner, why);
    else
        shared_->events->wake(p->owner);
}

void Session::changed(std::string_view path, bool deleted) {
    const auto slash = path.rfind('/');
    if (slash == path.npos) return;
    if (const auto known = known_parents_.find(std::string(path)); known != known_parents_.end()) {
        if (deleted)
            known_parents_.erase(known);
        else
            known->second = {};  // the watch was for this
        return;
    }
    const auto at = lines_.find(std::string(path.substr(0, slash)));
    if (at == lines_.end()) return;
    const std::string_view node = path.substr(slash + 1);
    const auto key = at->second.key_of(node);
    Line::Entry* e = key ? at->second.find(*key) : nullptr;
    if (e == nullptr || e->node != node) return;
    if (e->own) return own_changed(QueueNodePtr(e->own), deleted);
    if (deleted) return vanished(at->second, *key);
    e->watched = false;
    look_along(at->second);
}

}  // namespace holdfast::zookeeper
