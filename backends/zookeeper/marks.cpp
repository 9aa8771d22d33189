// An exclusive holder puts a mark with its token before core learns of the grant, and takes it
// away, in one step with its own node, when it lets go, and in one step with a downgrade. So a mark
// that is found belongs to somebody who never did. Readers read it and leave it.
#include "marks.hpp"

#include "backend.hpp"
#include "client_library.hpp"
#include "errors.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr std::string_view abandoned = "abandoned", crashed = "crashed";

}  // namespace

std::string marks_base(const Options& o) {
    return o.base + "/_hf_marks";
}

std::string mark_path(const Options& o, const std::string& name) {
    return marks_base(o) + "/" + escape(o.prefix + name, false);
}

std::string mark_of(const QueueNode& p) {
    return std::to_string(p.czxid) + " " + p.owner;
}

std::optional<std::string> mark_left_by(const QueueNode& p) {
    // Broken or lost: whatever its holder says of it later, it may have been cut short.
    const bool granted = p.state == QueueNode::State::granted;
    if (granted && p.loss != QueueNode::Loss::none) return std::string(crashed);
    if (granted) {
        if (p.how == Outcome::abandoned) return std::string(abandoned);
        return std::nullopt;
    }
    if (p.previous == PreviousHolder::crashed) return std::string(crashed);
    if (p.previous == PreviousHolder::abandoned) return std::string(abandoned);
    return std::nullopt;
}

namespace {

/// What a mark says that nobody took away.
PreviousHolder left_in(const std::string& text) {
    return text == abandoned ? PreviousHolder::abandoned : PreviousHolder::crashed;
}

/// Where there is no mark. The server counts from zero: nobody stood here before the first.
PreviousHolder before(const QueueNode& p) {
    return p.number == 0 ? PreviousHolder::none : PreviousHolder::released;
}

}  // namespace

awaitable<error_code> ZooKeeperBackend::read_mark(SessionPtr session, QueueNodePtr p,
                                                  boot_clock::time_point deadline) {
    CallPtr seen = session->handle().get(mark_path(shared_->options, p->name), false);
    auto look = finished(shared_->engine, seen, deadline);
    if (!co_await std::move(look)) co_return make(Error::no_answer);
    if (seen->rc != ZOK && seen->rc != ZNONODE) co_return from_rc(seen->rc);
    p->previous = seen->rc == ZOK ? left_in(seen->text) : before(*p);
    co_return error_code();
}

awaitable<error_code> ZooKeeperBackend::mark(SessionPtr session, QueueNodePtr p,
                                             boot_clock::time_point deadline) {
    const std::string path = mark_path(shared_->options, p->name);
    const std::string own = mark_of(*p);
    const auto doubt = [&](PreviousHolder found) {
        p->previous = found;
        p->mark_doubt = true;
        return make(Error::no_answer);
    };
    const auto done = [&](PreviousHolder found) {
        p->previous = found;
        p->marked = true;
        p->mark_doubt = false;
        return error_code();
    };
    CallPtr folder;
    for (int round = 0; round < 4; ++round) {
        CallPtr made = session->handle().create(path, own, Handle::Kind::persistent);
        auto wait = finished(shared_->engine, made, deadline);
        if (!co_await std::move(wait) || unanswered(made->rc))
            co_return doubt(p->mark_doubt ? p->previous : before(*p));
        if (made->rc == ZOK) co_return done(before(*p));
        if (made->rc == ZNONODE) {
            if (folder && from_rc(folder->rc) == errc::denied) co_return from_rc(folder->rc);
            folder = session->handle().create(marks_base(shared_->options), {},
                                              Handle::Kind::persistent);
            continue;
        }
        if (made->rc != ZNODEEXISTS) co_return from_rc(made->rc);
        CallPtr seen = session->handle().get(path, false);
        auto look = finished(shared_->engine, seen, deadline);
        if (!co_await std::move(look)) co_return make(Error::no_answer);
        if (seen->rc == ZNONODE) continue;
        if (seen->rc != ZOK) co_return from_rc(seen->rc);
        // By a request whose answer was lost.
        if (seen->text == own) co_return done(p->previous);
        CallPtr taken = session->handle().set(path, own, seen->version);
        auto taking = finished(shared_->engine, taken, deadline);
        if (!co_await std::move(taking) || unanswered(taken->rc))
            co_return doubt(left_in(seen->text));
        if (taken->rc == ZNONODE || taken->rc == ZBADVERSION) continue;
        if (taken->rc != ZOK) co_return from_rc(taken->rc);
        co_return done(left_in(seen->text));
    }
    co_return make(Error::no_answer);
}

}  // namespace holdfast::zookeeper
