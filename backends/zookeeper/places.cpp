// What a Session does for the places in line that live in it.
#include <algorithm>
#include <limits>

#include "client_library.hpp"
#include "errors.hpp"
#include "marks.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr std::size_t most_parents = 20'000;
constexpr int most_tries = 5;

}  // namespace

Line& Session::line(const std::string& parent) {
    return lines_.try_emplace(parent, parent).first->second;
}

PlacePtr Session::make_place(std::string_view name, std::string_view owner, milliseconds ttl) {
    auto p = std::make_shared<Place>();
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

void Session::end_place(const PlacePtr& p, Place::State state, error_code why) {
    if (places_.erase(p) == 0) return;
    const auto at = lines_.find(p->parent);
    if (at != lines_.end()) --at->second.places;
    p->state = state;
    p->why = why;
    last_used_ = boot_clock::now();
    p->gate.open();
    if (p->told) shared_->beats.open();
}

// --- a node of one's own
// --------------------------------------------------------------------------------

void Session::enter(const PlacePtr& p) {
    if (p->state == Place::State::idle && handle_->connected()) create_node(p);
}

void Session::create_parents(const std::string& parent) {
    if (known_parents_.size() >= most_parents) known_parents_.clear();
    known_parents_.insert_or_assign(parent, Ground{});
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
        Ground& ground = self->known_parents_[parent];
        ground = {};
        if (c.rc == ZOK) ground.life = ++self->lives_;
    });
}

void Session::create_node(const PlacePtr& p) {
    p->state = Place::State::creating;
    p->in_doubt = false;
    if (p->tries > 0) create_base();
    const auto known = known_parents_.find(p->parent);
    p->foreseen = known != known_parents_.end() && known->second.clear;
    if (known == known_parents_.end())
        create_parents(p->parent);
    else if (known->second.life == 0 && !known->second.asked)
        watch_parent(p->parent);  // it is used again
    const std::string data = write_data({p->owner, p->ttl.count(), false});
    handle_->create(p->parent + "/" + node_prefix(p->guid), data, Handle::Kind::sequential,
                    [weak = weak_from_this(), p](Call& c) {
                        if (const auto self = weak.lock()) self->created(p, c);
                    });
    // In the same round trip: what it answers includes the node.
    Line& l = line(p->parent);
    p->list = l.sent + 1;
    if (!p->foreseen) want_list(l);
}

void Session::find_rank(const PlacePtr& p) {
    const auto known = known_parents_.find(p->parent);
    const Ground ground = known == known_parents_.end() ? Ground{} : known->second;
    p->ground = ground.life;
    if (!p->foreseen) return;  // its list is on the way
    Line& l = line(p->parent);
    const auto sequence = sequence_of(p->node);
    if (sequence && ground.clear && *sequence == *ground.clear + 1 &&
        l.entries().begin()->first == p->key) {
        p->listed = true;
        p->gate.open();
    } else if (l.sent < p->list) {
        want_list(l);
    }
}

void Session::note_clear(const Place& p) {
    // It was the first, so all before it were gone. Where others stand in line the next one would
    // not be the first, and had better ask for the list at once.
    if (p.ground == 0 || p.waited || !first(p)) return;
    const auto known = known_parents_.find(p.parent);
    const auto sequence = sequence_of(p.node);
    if (known == known_parents_.end() || known->second.life != p.ground || !sequence) return;
    // At the end of their range numbers are given twice.
    const bool sound = *sequence >= 0 && *sequence < std::numeric_limits<std::int32_t>::max() - 1;
    if (sound) known->second.clear = *sequence;
}

void Session::created(const PlacePtr& p, Call& c) {
    if (p->state != Place::State::creating) return;
    if (c.rc == ZOK) {
        p->node = c.text.substr(c.text.rfind('/') + 1);
        p->czxid = c.czxid;
        p->state = Place::State::queued;
        line(p->parent).add(p);
        find_rank(p);
        if (p->leaving) remove_node(p);
        return;
    }
    if (unanswered(c.rc)) {
        // With no connection the request was not even sent; which of the two it was, a look tells.
        p->in_doubt = true;
        if (!handle_->connected()) return;
        handle_->sync(p->parent);
        look_for(p);
        return;
    }
    if (p->leaving) return end_place(p, Place::State::gone, {});
    if (c.rc == ZNONODE && p->tries++ < most_tries) {
        known_parents_.erase(p->parent);
        return create_node(p);
    }
    end_place(p, Place::State::failed, from_rc(c.rc));
}

// --- the line
// ---------------------------------------------------------------------------------------

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
        for (const PlacePtr& p : all)
            if (p->parent == parent && p->state == Place::State::queued && !p->listed) {
                p->why = from_rc(c.rc);
                p->refused = true;
                leave(p, Outcome::abandoned);
            }
        return;
    }
    const auto vanished_ones = l.apply(c.children, number);
    for (const PlacePtr& p : vanished_ones) {
        if (p->leaving) continue;  // its own request is answered in a moment
        const bool lost = p->told;
        end_place(p, Place::State::gone, make_error_code(errc::lost));
        if (lost)
            shared_->sink->lost(p->owner, make_error_code(errc::lost));
        else
            shared_->sink->wake(p->owner);
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
        if (e.own && e.own->state == Place::State::queued && !e.own->leaving) {
            e.own->gate.open();
            if (ahead == nullptr && e.own->listed)
                shared_->sink->wake(e.own->owner);
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
    const PlacePtr p = next->own;
    if (p->state != Place::State::queued || p->leaving || !p->listed) return;
    if (l.first(*p)) {
        p->gate.open();
        shared_->sink->wake(p->owner);
        return;
    }
    // Those further ahead were not watched and may be gone as well: one list says so of all.
    const Line::Entry* ahead = l.ahead(p->key);
    if (ahead != nullptr && !ahead->own && !ahead->watched && !ahead->asking) want_list(l);
}

bool Session::first(const Place& p) const {
    const auto at = lines_.find(p.parent);
    return at != lines_.end() && at->second.first(p);
}

bool Session::known_busy(std::string_view name) const {
    const auto at = lines_.find(parent_path(shared_->options, name));
    if (at == lines_.end() || over_ || !handle_->connected()) return false;
    return std::any_of(at->second.entries().begin(), at->second.entries().end(),
                       [](const auto& e) { return e.second.own && !e.second.own->leaving; });
}

void Session::keep_waiting(const PlacePtr& p) {
    last_used_ = boot_clock::now();
    const auto at = lines_.find(p->parent);
    if (at == lines_.end() || !handle_->connected()) return;
    Line& l = at->second;
    // The watch tells; this is for what nobody thought of. Long lists are looked at less often.
    const auto pace =
        std::max(milliseconds(1000), milliseconds(static_cast<long long>(l.entries().size())));
    if (boot_clock::now() >= l.last + pace) want_list(l);
}

// --- leaving
// ----------------------------------------------------------------------------------------

void Session::leave(const PlacePtr& p, Outcome how) {
    if (!places_.contains(p)) return;
    p->leaving = true;
    p->how = how;
    switch (p->state) {
        case Place::State::idle:
            return end_place(p, Place::State::gone, {});
        case Place::State::creating:
            return;  // its answer, or the look for it, goes on from there
        case Place::State::queued:
        case Place::State::granted:
            return remove_node(p);
        case Place::State::gone:
        case Place::State::failed:
            return;
    }
}

void Session::remove_node(const PlacePtr& p) {
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

void Session::removed(const PlacePtr& p, int rc) {
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
    if (at != lines_.end()) vanished(at->second, p->key);
    end_place(p, Place::State::gone, p->why);
}

void Session::expire_places(boot_clock::time_point now) {
    std::vector<PlacePtr> expired;
    for (const PlacePtr& p : places_)
        if (p->told && !p->leaving && now > p->expires) expired.push_back(p);
    for (const PlacePtr& p : expired) {
        p->why = make_error_code(p->revoked ? errc::revoked : errc::lost);
        leave(p, Outcome::abandoned);
    }
}

// --- one's own node, watched
// ------------------------------------------------------------------------------

void Session::watch_own(const PlacePtr& p) {
    if (p->watching || !handle_->connected() || p->node.empty()) return;
    p->watching = true;
    handle_->get(p->path(), true, [weak = weak_from_this(), p](Call& c) {
        if (const auto self = weak.lock()) self->own_seen(p, c);
    });
}

void Session::own_seen(const PlacePtr& p, Call& c) {
    p->watching = false;
    if (c.rc == ZNONODE) own_changed(p, true);
    if (c.rc == ZOK) {
        p->watched = true;
        const auto data = read_data(c.text);
        if (data && data->revoked && !std::exchange(p->revoked, true) && p->told && !p->leaving)
            shared_->sink->lost(p->owner, make_error_code(errc::revoked));
    }
    shared_->beats.open();
}

void Session::own_changed(const PlacePtr& p, bool deleted) {
    if (p->leaving || !places_.contains(p)) return;
    if (!deleted) {
        p->watched = false;
        return watch_own(p);
    }
    const bool told = p->told;
    const auto at = lines_.find(p->parent);
    if (at != lines_.end()) vanished(at->second, p->key);
    const error_code why = make_error_code(p->revoked ? errc::revoked : errc::lost);
    end_place(p, Place::State::gone, why);
    if (told)
        shared_->sink->lost(p->owner, why);
    else
        shared_->sink->wake(p->owner);
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
    if (e->own) return own_changed(PlacePtr(e->own), deleted);
    if (deleted) return vanished(at->second, *key);
    e->watched = false;
    look_along(at->second);
}

}  // namespace holdfast::zookeeper
