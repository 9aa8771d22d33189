// A release at all nodes, or the withdrawal of a grant that was never reported.
#include "../resp/errors.hpp"
#include "errors.hpp"
#include "rounds.hpp"

namespace holdfast::redlock {

using spi::Attempt;
using spi::Held;

ReleaseRound::ReleaseRound(const RoundContext& s, const Held& h, bool engine)
    : Round(s, h.name, h.place, !h.units.exclusive(), kept_now(h), h.deadline),
      engine_(engine),
      told_(true) {}

ReleaseRound::ReleaseRound(const RoundContext& s, const Attempt& a)
    : Round(s, a.name, a.place, !a.units.exclusive(), kept_for(a), a.deadline),
      engine_(true),
      told_(false) {}

void ReleaseRound::begin(boot_clock::time_point now) {
    begun_ = now;
    waiting_ = peers_.size();
    votes_.begin(peers_.size());
    OwnerState* const p = find_state(place_);
    if (p != nullptr) p->leaving = true;
    // Before anything is sent: what another thread notes as arrived meanwhile may have come after
    // our release.
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        peers_[i].wanted = true;
        const auto none = boot_clock::time_point::min();
        under_way_.push_back(
            {p == nullptr ? none : p->under_way(i), p == nullptr ? none : p->under_way(i, true)});
    }
    const std::string value = p == nullptr ? std::string() : p->value;
    const std::string mark = p == nullptr ? std::string() : p->marked;
    if (told_ && closed_for(place_, now) > milliseconds(0))
        request_ = leave_ask(keys_, value, mark, p->closed_until);
    else
        request_ = undo_ask(keys_, value, context_.fencing, shared_, mark);
}

void ReleaseRound::said(std::size_t node, bool, const Reply& r, boot_clock::time_point,
                        bool in_order) {
    const std::size_t before = tally_.answered();
    tally_.add(r);
    if (tally_.answered() == before) {
        silent(node, true, {});
        return votes_.set(node, vote_from(r, false));
    }
    votes_.set(node, {.kind = Vote::Kind::granted});
    --waiting_;
    const OwnerState* const p = find_state(place_);
    const auto again = in_order                  ? under_way_[node].in_order
                       : engine_ && p != nullptr ? p->under_way(node)
                                                 : under_way_[node].any;
    // Not the time of the answer: something may have come after the release and before that.
    if (again > begun_) owe(node, request_, again);
}

void ReleaseRound::silent(std::size_t node, bool, const spi::Failure& why) {
    --waiting_;
    votes_.set(node, {.kind = Vote::Kind::missing, .why = why.why, .words = why.detail});
    owe(node, request_, under_way_[node].any);
}

Round::Phase ReleaseRound::phase(boot_clock::time_point) {
    if (waiting_ == 0) return Phase::closed;
    return tally_.ones >= context_.voters.quorum() ? Phase::decided : Phase::open;
}

void ReleaseRound::finish(boot_clock::time_point) {
    finished_ = true;
    for (std::size_t i = 0; i < peers_.size(); ++i)
        if (std::exchange(peers_[i].wanted, false)) owe(i, request_, under_way_[i].any);
}

void ReleaseRound::report(Held& h, boot_clock::time_point now) const {
    h.released = result();
    if (h.released != ReleaseResult::unreachable) return;
    h.release_error = votes_.why();
    h.detail = votes_.words(context_.voters, now);
}

}  // namespace holdfast::redlock
