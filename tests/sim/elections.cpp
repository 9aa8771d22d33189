// What a worker does in an election: it campaigns and leads, and looks who does.
#include <algorithm>

#include "calls.hpp"
#include "listener.hpp"
#include "succession.hpp"

namespace holdfast::sim {

void Worker::elect(std::size_t name) {
    if (random().chance(400))
        observe(name);
    else
        campaign(name);
}

void Worker::campaign(std::size_t name) {
    World::Candidate& candidate = *user_.candidates[name];
    const std::string value = user_.process.name + "-" + std::to_string(world_.terms_.size());
    Term& term = world_.terms_[value];
    term.name = name;
    AcquireOptions o;
    o.wait = random_wait();
    const Belief* const leads = candidate.leads;
    const bool busy = candidate.busy++ > 0;
    const auto number = ++candidate.campaigns;
    const Approach approach{[&](const AcquireOptions& options, std::stop_token stop) {
                                return candidate.election.campaign(value, options, std::move(stop));
                            },
                            [&](const AcquireOptions& options, Approach::Handler handler) {
                                candidate.election.async_campaign(value, options,
                                                                  std::move(handler));
                            },
                            [&](error_code ec) {
                                const bool met = busy || candidate.campaigns > number;
                                return met && ec == errc::would_deadlock;
                            }};
    const Nanos asked = world_.kernel.now();
    auto [ec, lease] = acquire(approach, o, name, !busy);
    if (leads != nullptr && leads == candidate.leads && ec != errc::would_deadlock)
        world_.fail(user_.process.name + ": a leader campaigns");
    if (ec) {
        --candidate.busy;
        if (ec != errc::would_deadlock)
            world_.succession_->failed(user_.process, name, o.mode, asked);
        return;
    }
    std::list<Lease> mine;
    mine.push_back(std::move(lease));
    Belief belief(mine.back(), user_.process, name, 1);
    term.owner = belief.owner;
    term.token = mine.back().fencing_token();
    believe(belief, asked);
    belief.term = &term;
    candidate.leads = &belief;
    term.leads = &candidate.leads;
    hold(std::move(mine), belief, nullptr);
    --candidate.busy;
}

void Worker::observe(std::size_t name) {
    World::Candidate& candidate = *user_.candidates[name];
    const std::optional<Leader> known = candidate.known;
    const Since since = begin();
    const Nanos request = world_.request_timeout.count() * ms;
    if (random().chance(500)) {
        const auto found = candidate.election.leader();
        took(since, request, "a look for the leader");
        judge_look(found ? error_code() : found.error(), false);
        if (!found) return;
        check_leader(*found, name, since.moment);
        candidate.known = *found;
        return;
    }
    const milliseconds wait(random().between(20, 3000));
    trace("observes " + world_.names[name].text + ", knows " + (known ? known->value : "none"));
    const auto found = candidate.election.observe(known, wait);
    took(since, wait.count() * ms + request, "an observation");
    judge_look(found ? error_code() : found.error(), true);
    if (!found) {
        const auto term = known ? world_.terms_.find(known->value) : world_.terms_.end();
        const bool stood = user_.killed || user_.process.late_until() > since.moment;
        if (found.error() == errc::timed_out && !stood && term != world_.terms_.end() &&
            term->second.gone + request + world_.slack() < world_.kernel.now() &&
            !may_lead_on(since.moment))
            world_.fail(user_.process.name + ": it has missed that " + known->value + " resigned");
        return;
    }
    const bool same =
        found->has_value() == known.has_value() && (!known || known->owner == (*found)->owner);
    if (same) world_.fail(user_.process.name + ": it has observed the leader that it knew");
    check_leader(*found, name, since.moment);
    candidate.known = *found;
}

void Worker::judge_look(error_code ec, bool waits) {
    if (!ec || user_.killed || (waits && ec == errc::timed_out)) return;
    if (world_.calm || (ec != errc::unavailable && ec != errc::no_quorum))
        world_.fail(user_.process.name + ": a look for the leader ended with: " + ec.message());
}

/// As seen by a call that has begun then.
void Worker::check_leader(const std::optional<Leader>& found, std::size_t name, Nanos since) {
    trace("the leader is " + (found ? found->value : "none"));
    if (!found) return;
    const auto at = world_.terms_.find(found->value);
    const std::string who = user_.process.name + ": the leader, \"" + found->value + "\", ";
    if (at == world_.terms_.end() || at->second.name != name)
        return world_.fail(who + "has not campaigned");
    const Term& term = at->second;
    if (term.owner.empty()) return;  // it does not know yet, or never will
    if (term.owner != found->owner) world_.fail(who + "is another owner: " + found->owner);
    // Where some modes have none.
    const bool both = found->token.value != 0 && term.token.value != 0;
    // An attempt before the one that was granted proposed a lower one.
    const bool earlier = found->token < term.token && world_.deployment_->may_seem_held();
    if (both && found->token != term.token && !earlier)
        world_.fail(who + "has another token: " + std::to_string(found->token.value));
    if (term.gone < since && !may_lead_on(since)) world_.fail(who + "has resigned");
}

/// To those that look since then, one that has resigned.
bool Worker::may_lead_on(Nanos since) const {
    // Where requests carry no deadline, one of its own that comes late wins the name for nobody.
    if (world_.deployment_->acquires_late()) return true;
    const Nanos quiet = world_.troubled_until_ + world_.deployment_->recovery();
    return world_.deployment_->may_seem_held() && (world_.far_ > 0 || since < quiet);
}

}  // namespace holdfast::sim
