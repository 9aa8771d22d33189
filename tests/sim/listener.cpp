#include "listener.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "history.hpp"

namespace holdfast::sim {
namespace {

constexpr std::string_view expired = "its validity ended without a renewal",
                           held_too_long = "held for longer than max_hold";

}  // namespace

Listener::Listener(World& w, World::User& u, const Belief& b, Nanos asked)
    : world_(w), user_(u), owner_(b.owner), called_(asked), learnt_(now()) {
    see(b, b.lease->state());
}

Listener::~Listener() = default;

Running Listener::now() const {
    return Running::of(user_.process, world_.kernel.now());
}

void Listener::ask(Lease& lease) {
    if (!stop_asked_ && world_.kernel.random().chance(500)) {
        stop_asked_ = now();
        stop_.emplace(lease.lost(), [ears = ears_, &p = user_.process] { ears->stopped.now(p); });
        return;
    }
    if (completion_asked_) return;
    completion_asked_ = now();
    auto handler = [ears = ears_, &p = user_.process](error_code ec) {
        ears->completed.now(p, ec);
    };
    if (!world_.with_loop_) return lease.async_lost(handler);
    lease.async_lost(asio::bind_executor(
        user_.loop->get_executor(), asio::bind_cancellation_slot(ears_->signal.slot(), handler)));
}

void Listener::cancel() {
    if (!completion_asked_ || !world_.with_loop_ || cancelled_) return;
    cancelled_ = true;
    asio::post(*user_.loop,
               [ears = ears_] { ears->signal.emit(asio::cancellation_type::terminal); });
}

void Listener::see(const Belief& b, LeaseState state) {
    risked_ = risked_ || state == LeaseState::at_risk;
    const bool valid = state == LeaseState::held || state == LeaseState::at_risk;
    const Nanos until = user_.process.when(b.lease->valid_until().time_since_epoch().count());
    if (std::exchange(valid_until_, until) != until) extended_ = now();
    if (!valid && !ended_) ended(b, b.lease->lost_reason());
    if (!valid || !wrong_.empty()) return;
    const Told& heard = ears_->completed;
    if (ears_->stopped.times > 0) wrong_ = "lost() was requested while it is valid";
    if (heard.times > 0 && heard.what != errc::cancelled)
        wrong_ = "async_lost() ended while it is valid: " + heard.what.message();
    if (world_.told_.contains(owner_)) wrong_ = "the event came while it is valid";
}

void Listener::ended(const Belief& b, error_code reason) {
    ended_ = now();
    end_ = End::lost;
    reason_ = reason;
    if (wrong_.empty()) wrong_ = wrong_reason(b, reason);
}

void Listener::left(std::optional<error_code> reason, const Belief& b) {
    left_ = now();
    if (ended_) {
        if (reason && *reason != reason_ && wrong_.empty())
            wrong_ = "its loss was told as \"" + reason_.message() + "\", and now as \"" +
                     reason->message() + "\"";
        return;
    }
    if (!reason) {
        end_ = End::either;  // it may have been lost just before
    } else if (*reason) {
        ended(b, *reason);
    } else {
        end_ = End::released;
    }
}

bool Listener::may_be_broken(const Belief& b, bool now) const {
    if (world_.history_->may_be_broken(b, now)) return true;
    // While its release began it may have been broken as well.
    return left_ && world_.history_->may_be_broken(b.name, called_);
}

std::string Listener::wrong_reason(const Belief& b, error_code why) const {
    const LockOptions& o = world_.names[b.name].options;
    const bool renewed = o.renew && o.max_hold == forever;
    const std::string text = why.message();
    if (why == errc::revoked)
        return may_be_broken(b, false) ? "" : "it was revoked, and nobody broke it";
    if (why != errc::lost) return "it was lost for no known reason: " + text;
    const bool freed = may_be_broken(b, true) && !world_.deployment_->tells_breaks();
    if (world_.calm && renewed && may_be_broken(b, false) && !freed)
        return "it was broken, and lost since \"" + text + "\"";
    if (text == held_too_long) {
        const Nanos most = o.max_hold == forever ? never : o.max_hold.count() * ms;
        return world_.kernel.now() < called_ + most - most / 100 ? "not yet held for max_hold" : "";
    }
    if (text == expired) return wrong_expiry(b);
    // As its server, or its client library, says that it is gone.
    return freed || world_.deployment_->may_forget() ? "" : "the server no longer had it";
}

std::string Listener::wrong_expiry(const Belief& b) const {
    const Nanos ttl = world_.ttl.count() * ms;
    if (world_.kernel.now() < valid_until_) return "it expired before its end";
    // A renewal is sent a third of the ttl after the last one, whose answer may have taken as long,
    // and is known to be unanswered after a third; unless the machine stood still, or is too slow.
    const bool stood = user_.process.late_until() > valid_until_ - ttl;
    if (risked_ || stood || !world_.names[b.name].options.renew || ttl / 3 < 2 * world_.slack_ ||
        extended_.until(now()) < 2 * ttl / 3 + world_.slack_)
        return {};
    return "it expired, and was never at risk";
}

bool Listener::is_due() const {
    if (user_.killed) return true;
    if (!wrong_.empty()) return true;
    if (!left_) return false;
    // Something may come at the end of its validity.
    const Running since{std::max(left_->at, valid_until_), left_->frozen};
    return since.until(now()) > 2 * world_.slack_;
}

/// A lease that was dropped cannot be asked.
Listener::End Listener::end() const {
    if (end_ != End::either) return end_;
    const auto is_loss = [&](const Told& told) {
        if (told.times == 0 || told.what == errc::not_held || told.what == errc::cancelled)
            return false;
        return left_->at >= valid_until_ || left_->until(told.when) < world_.slack_;
    };
    const auto event = world_.told_.find(owner_);
    const bool lost = is_loss(ears_->stopped) || is_loss(ears_->completed) ||
                      (event != world_.told_.end() && is_loss(event->second));
    return lost ? End::lost : End::released;
}

std::string Listener::wrong_time(const Told& told, const Running& asked, const char* way) const {
    if (told.times == 0) return std::string(way) + " did not tell its loss";
    if (told.times > 1) return std::string(way) + " told its loss twice";
    if (!ended_) return {};
    const Nanos late = std::min(ended_->until(told.when), asked.until(told.when));
    if (late <= world_.slack_) return {};
    return std::string(way) + " told its loss " + std::to_string(late / ms) + " ms late";
}

std::string Listener::wrong_completion(End end) const {
    const Told& told = ears_->completed;
    if (told.times != 1) return "async_lost() ended " + std::to_string(told.times) + " times";
    if (told.what == errc::cancelled) return cancelled_ ? "" : "async_lost() was cancelled";
    if (end == End::released)
        return told.what == errc::not_held
                   ? ""
                   : "async_lost() says after a release: " + told.what.message();
    if (ended_ && told.what != reason_)
        return "async_lost() gives another reason: " + told.what.message();
    return wrong_time(told, *completion_asked_, "async_lost()");
}

std::string Listener::wrong_event(End end) const {
    const auto event = world_.told_.find(owner_);
    if (event == world_.told_.end())
        return end == End::lost && world_.with_events_ ? "no event told its loss" : "";
    const Told& told = event->second;
    if (end == End::released) return "an event told a loss after a release: " + told.what.message();
    if (ended_ && told.what != reason_)
        return "the event gives another reason: " + told.what.message();
    return wrong_time(told, learnt_, "the event");
}

std::string Listener::wrong() const {
    std::string out = wrong_;
    if (out.empty() && left_ && !user_.killed) {
        const End how = end();
        out = wrong_event(how);
        if (out.empty() && completion_asked_) out = wrong_completion(how);
        if (out.empty() && how == End::released && ears_->stopped.times > 0)
            out = "lost() was requested after a release";
        if (out.empty() && how == End::lost && stop_asked_)
            out = wrong_time(ears_->stopped, *stop_asked_, "lost()");
    }
    return out.empty() ? "" : user_.process.name + ", as " + owner_.substr(0, 6) + ": " + out;
}

}  // namespace holdfast::sim
