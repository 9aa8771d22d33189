// What becomes of a Session's own nodes: watched, downgraded, asked for, removed.
#include "client_library.hpp"
#include "errors.hpp"
#include "marks.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {

// --- leaving
// ----------------------------------------------------------------------------------------

void Session::leave(const QueueNodePtr& p, Outcome how) {
    if (p->turn) leave(p->turn, how);
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
    // What the request said: a downgrade or a watch may change the node before its answer.
    const bool with_mark = p->marked, several = !p->more.empty();
    auto then = [weak = weak_from_this(), p, with_mark, several](Call& c) {
        if (const auto self = weak.lock()) self->removed(p, c.rc, with_mark, several);
    };
    if (p->marked) {
        std::optional<std::string> text = mark_left_by(*p);
        handle_->remove_with(p->path(), mark_path(p->name), std::move(text), std::move(then));
    } else if (!p->more.empty()) {
        std::vector<std::string> paths = p->nodes();
        for (std::string& node : paths)
            node.insert(0, p->parent + "/");
        handle_->remove_all(paths, std::move(then));
    } else {
        handle_->remove(p->path(), std::move(then));
    }
}

void Session::removed(const QueueNodePtr& p, int rc, bool with_mark, bool several) {
    if (!places_.contains(p)) return;
    p->removing = false;
    if (unanswered(rc)) {
        p->maybe_removed = true;
        return;
    }
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
    if (rc != ZOK && rc != ZNONODE) {
        p->why = from_rc(rc);
        p->gate.open();
        return;
    }
    p->was_removed = rc == ZOK || p->maybe_removed;
    note_clear(*p);
    const auto at = lines_.find(p->parent);
    if (at != lines_.end())
        for (const std::string& node : p->nodes()) {
            const Line::Entry* e = at->second.find(node);
            if (e != nullptr && e->own == p) vanished(at->second, node);
        }
    end_place(p, QueueNode::State::gone, p->why);
}

void Session::forget_permits(QueueNode& p) {
    for (const std::string& node : std::exchange(p.more, {})) {
        remove_ghost(p.parent, node);
        if (const auto at = lines_.find(p.parent); at != lines_.end()) at->second.remove(node);
    }
}

void Session::expire_places(boot_clock::time_point now) {
    std::vector<QueueNodePtr> expired;
    for (const QueueNodePtr& p : places_)
        if (p->told && !p->leaving && now > p->expires + p->lock_delay) expired.push_back(p);
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
        p->version = c.version;
        const auto data = read_data(c.text);
        if (data && data->revoked && !std::exchange(p->revoked, true) && p->told && !p->leaving)
            shared_->events->lost(p->owner, make_error_code(errc::revoked));
        const bool wanted = (data && data->asked) || c.text == curator_revoke;
        if (wanted && !std::exchange(p->wanted_back, true) && p->told && !p->leaving)
            shared_->events->asked(p->owner);
        // Curator's word took the place of ours: who it is, and how it holds it.
        if (c.text == curator_revoke) handle_->set(p->path(), data_of(*p, p->reads), c.version);
        if (data && data->shared && !p->reads) downgraded(p);
    }
    shared_->beats.open();
}

void Session::downgrade(const QueueNodePtr& p) {
    if (p->reads || p->downgrading || p->leaving || !handle_->connected()) return;
    p->downgrading = true;
    auto then = [weak = weak_from_this(), p](Call& c) {
        p->downgrading = false;
        const auto self = weak.lock();
        if (!self) return;
        if (c.rc == ZOK) self->downgraded(p);
        // A mark that is not there any more: then without it, with the renewal that waits.
        if (c.rc == ZNONODE) p->marked = false;
        // Somebody has written to it meanwhile: the watch brings what.
        if (c.rc == ZBADVERSION) self->own_changed(p, false);
        self->shared_->beats.open();
    };
    std::string data = data_of(*p, true);
    if (p->marked)
        // Whoever comes next is told that the writer has released.
        handle_->remove_with(mark_path(p->name), p->path(), std::move(data), std::move(then),
                             p->version);
    else
        handle_->set(p->path(), data, p->version, std::move(then));
}

void Session::downgraded(const QueueNodePtr& p) {
    p->reads = true;
    p->marked = false;
    if (const auto at = lines_.find(p->parent); at != lines_.end())
        let_in_behind(at->second, at->second.downgrade(p->node));
}

void Session::own_changed(const QueueNodePtr& p, bool deleted) {
    if (p->leaving || !places_.contains(p)) return;
    if (!deleted) {
        p->watched = false;
        return watch_own(p);
    }
    const bool told = p->told;
    forget_permits(*p);
    const auto at = lines_.find(p->parent);
    if (at != lines_.end()) vanished(at->second, p->node);
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
    const std::string node(path.substr(slash + 1));
    Line::Entry* e = at->second.find(node);
    if (e == nullptr) return;
    if (e->own) return own_changed(QueueNodePtr(e->own), deleted);
    if (deleted) return vanished(at->second, node);
    e->watched = false;
    look_along(at->second);
}

}  // namespace holdfast::zookeeper
