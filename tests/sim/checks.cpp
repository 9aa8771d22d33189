// What a run is held to after each of its steps.
#include <algorithm>
#include <utility>

#include "history.hpp"
#include "listener.hpp"

namespace holdfast::sim {

namespace {

/// Who asks so soon after another may come before it.
constexpr Nanos close_by = 100 * ms;

}  // namespace

/// What any step may have broken.
void World::check() {
    believers_.clear();
    for (const Belief* b : beliefs_) {
        if (b->process->dead) continue;
        kernel.look_as(b->process);
        const LeaseState state = b->lease->state();
        b->listener->see(*b, state);
        kernel.look_as(nullptr);
        const bool valid = state == LeaseState::held || state == LeaseState::at_risk;
        if (valid && b->over)
            fail(b->process->name + ": a lost lease is valid again: " + names[b->name].text);
        b->over = !valid;
        if (!valid) continue;
        if (const auto why = history_->contradicts(*b); !why.empty())
            fail(b->process->name + " holds " + names[b->name].text + " as " +
                 b->owner.substr(0, 6) + ": " + why);
        // What an operator has freed at once may have two holders.
        if (!history_->may_be_broken(*b, true)) believers_.push_back(b);
    }
    for (const Belief* b : believers_) {
        const Name& n = names[b->name];
        const bool permits = n.options.kind == Kind::semaphore;
        std::uint64_t used = 0;
        for (const Belief* other : believers_) {
            if (other->name != b->name) continue;
            const bool both_read =
                b->lease->mode() == Mode::shared && other->lease->mode() == Mode::shared;
            if (other == b || permits || !both_read) used += permits ? other->lease->permits() : 1;
        }
        if (used > (permits ? b->limit : 1) && deployment_->may_overlap()) {
            overlapping_.insert(b->owner);
        } else if (used > (permits ? b->limit : 1)) {
            std::string who;
            for (const Belief* one : believers_)
                if (one->name == b->name)
                    who += " " + one->process->name + " " + one->owner.substr(0, 6);
            fail("more than the limit hold " + n.text + ":" + who);
        }
        if (history_->may_be_broken(*b, false)) continue;
        if (const auto why = deployment_->contradicts(*b, n); !why.empty())
            fail(b->process->name + " holds " + n.text + " as " + b->owner.substr(0, 6) + ": " +
                 why);
    }
}

void World::check_passed(const Lease& lease, std::size_t name, Nanos asked) {
    // Who polls takes its place with a look after that second; a call about to end may have none.
    const Nanos long_enough =
        second + std::min(ttl.count() * ms / 3, second) + 600 * ms + 12 * far_;
    constexpr Nanos soon = 100 * ms;
    const Name& n = names[name];
    const bool permits = n.options.kind == Kind::semaphore;
    for (const Waiting& w : waiting_) {
        if (w.name != name || w.user->killed || !deployment_->ages(n, w.mode)) continue;
        if (n.next_limit > 0) continue;  // who asks with another limit is refused, or waits anew
        // Faults of others keep it from nothing; after its own, and those of servers, it ages anew.
        const Nanos troubled = std::max(w.user->troubled_until, servers_troubled_until_);
        const Nanos quiet = troubled == 0 ? 0 : troubled + deployment_->recovery();
        const Nanos since = std::max(w.since, quiet);
        if (since + long_enough > asked || w.until < kernel.now() + soon) continue;
        // It may have been broken before it knew of its grant, and then asks anew.
        if (history_->may_be_broken(name, w.since, true)) continue;
        const bool fits = permits ? w.permits + lease.permits() <= n.options.limit
                                  : w.mode == Mode::shared && lease.mode() == Mode::shared;
        if (!fits)
            fail("it has passed one that waits since " + std::to_string(w.since / ms) +
                 " ms: " + std::string(lease.owner_id().substr(0, 6)));
    }
}

void World::check_waiting() {
    constexpr Nanos pause = 50 * ms;
    const Nanos now = kernel.now();
    if (now < looked_ + pause) return;
    looked_ = now;
    for (const Belief* b : beliefs_)
        if (!b->process->dead) in_use_[b->name] = now;
    for (const Owed& one : owed_)
        in_use_[one.name] = now;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (unseen_[i] > 0) in_use_[i] = now;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (history_->closed_until(i) > now) in_use_[i] = now;
    // Who was granted and learns of it too late gives back, and looks again; what a killed client
    // had lasts for its ttl.
    const Nanos length = ttl.count() * ms;
    const Nanos bound = 2 * length + 5 * second + 6 * far_;
    const Nanos calm_since = troubled_until_ + deployment_->recovery() +
                             (killed_ ? length + delay_ + deployment_->mourning() : 0);
    for (const Waiting& w : waiting_) {
        const Nanos since = std::max({w.since, in_use_[w.name], calm_since});
        if (w.user->killed || now < since + bound || w.until < now + second) continue;
        fail(w.user->process.name + " waits for " + names[w.name].text + ", which is free since " +
             std::to_string(since / ms) + " ms");
    }
}

void World::check_told(bool all) {
    for (auto at = listeners_.begin(); at != listeners_.end();) {
        if (!all && !(*at)->is_due()) {
            ++at;
            continue;
        }
        if (const auto why = (*at)->wrong(); !why.empty()) fail(why);
        at = listeners_.erase(at);
    }
}

void World::hinder(std::size_t name, Nanos since) {
    for (Waiting& w : waiting_)
        if (w.name == name && w.since + close_by >= since) w.hindered = kernel.now();
}

bool World::is_hindered(const Waiting& w) const {
    const Nanos now = kernel.now();
    const Name& n = names[w.name];
    const bool permits = n.options.kind == Kind::semaphore;
    const auto units = [&](Mode mode, std::uint64_t count) {
        return permits ? count : mode == Mode::shared ? 1 : many;
    };
    if (unseen_[w.name] > 0) return true;
    if (std::max(history_->closed_until(w.name), lapses_[w.name]) > now) return true;
    std::uint64_t sum = units(w.mode, w.permits);
    for (const Belief* b : beliefs_)
        if (b->name == w.name) sum += units(b->lease->mode(), b->lease->permits());
    for (const Waiting& other : waiting_)
        if (&other != &w && other.name == w.name && other.since <= w.since + close_by)
            sum += units(other.mode, other.permits);
    return sum > (permits ? n.options.limit : many);
}

void World::check_prompt() {
    const Nanos now = kernel.now(), length = ttl.count() * ms;
    if (now < prompt_looked_ + 5 * ms) return;
    prompt_looked_ = now;
    for (Waiting& w : waiting_) {
        const Name& n = names[w.name];
        // Other limits are refused, and what an operator broke is free when its server says so.
        const bool judged = n.next_limit == 0 && !history_->may_be_broken(w.name, now - 2 * length);
        if (!judged || is_hindered(w)) w.hindered = now;
        const Nanos free = std::max(w.since, w.hindered);
        // Nobody is notified of an end that comes by itself.
        const Nanos itself = std::max(history_->closed_until(w.name), lapses_[w.name]);
        const Nanos due = std::max(free + deployment_->hand_off(notified_),
                                   itself + deployment_->hand_off(false));
        if (now < due || w.until < now + 50 * ms) continue;
        fail(w.user->process.name + " could have had " + n.text + " since " +
             std::to_string(free / ms) + " ms");
    }
}

/// A release that was not answered is repeated as soon as the server can be reached.
void World::check_owed() {
    const Nanos now = kernel.now(), rest = deployment_->rest() + 6 * far_;
    if (now < std::max(owed_.front().since, troubled_until_) + rest) return;
    const Owed one = std::move(owed_.front());
    owed_.pop_front();
    if (!one.user->killed && deployment_->keeps(one.owner, names[one.name]))
        fail(names[one.name].text + " was not given back: " + one.owner.substr(0, 6));
}

}  // namespace holdfast::sim
