#include "lane.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <ctime>
#include <span>

#include "../resp/errors.hpp"
#include "errors.hpp"

namespace holdfast::redlock {

using resp::LaneLink;
using spi::Attempt;
using spi::Held;

Lane::Lane(std::shared_ptr<Deployment> f, const std::shared_ptr<tls::Context>& tls)
    : deployment_(std::move(f)) {
    for (const auto& node : deployment_->set->nodes)
        links_.push_back(std::make_unique<LaneLink>(*node->server, tls));
    parts_.resize(links_.size());
    polled_.reserve(links_.size());
    polled_nodes_.reserve(links_.size());
    const std::lock_guard hold(deployment_->mutex);
    deployment_->lane_requests.push_back(&request_);
}

Lane::~Lane() {
    const std::lock_guard hold(deployment_->mutex);
    std::erase(deployment_->lane_requests, &request_);
}

void Lane::set_request(const Attempt* a) {
    const std::lock_guard hold(deployment_->mutex);
    request_.open = a != nullptr;
    if (a == nullptr) return;
    request_.key = deployment_->set->options.prefix;
    request_.key += a->name;
    request_.value = find_state(a->place)->value;
    request_.shared = !a->units.exclusive();
    request_.deadline = a->deadline;
    request_.ttl = kept_for(*a);
}

void Lane::look(std::size_t node, boot_clock::time_point now) {
    if (now < next_look_) return;
    next_look_ = now + milliseconds(20);
    asio::post(deployment_->executor, [line = deployment_->connections[node]] { line->look(); });
}

void Lane::owe(std::size_t node, const Ask& release, boot_clock::time_point again,
               milliseconds ttl) {
    asio::post(deployment_->executor,
               [f = deployment_, node, release, again, ttl] { f->owe(node, release, again, ttl); });
}

void Lane::acquire_late(std::size_t node, const Ask& enter, const std::shared_ptr<void>& place) {
    asio::post(deployment_->executor,
               [f = deployment_, node, enter, place] { f->acquire_late(node, enter, place); });
}

void Lane::open_links(boot_clock::time_point now) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
        auto& link = links_[i];
        link->check(now);
        link->drain(now);
        if (link->overdue(now, deployment_->set->options.patience)) {
            link->close(resp::make(resp::Error::no_answer));
            node(i).set_down(link->why().why);
            look(i, now);
        }
        if (link->state() != LaneLink::State::closed || node(i).down()) continue;
        link->connect(now);
    }
}

void Lane::broke(Round& round, std::size_t i, boot_clock::time_point now) {
    LaneLink& link = *links_[i];
    Part& part = parts_[i];
    const spi::Failure& why = link.why();
    // Cut off in the middle is one thing; not to be reached, or silent, another.
    if (!part.asked || why.why != resp::make(resp::Error::closed)) {
        if (why.why != resp::make(resp::Error::unresolved)) node(i).set_down(why);
        look(i, now);
    }
    if (std::exchange(part.asked, false)) round.missing(i, part.number, why, true);
    if (round.wants(i)) round.missing(i, round.asked(i), why, false);
}

void Lane::send(Round& round, std::size_t i, unsigned number, bool text,
                boot_clock::time_point now) {
    LaneLink& link = *links_[i];
    const Ask& request = round.request();
    if (request.verb != nullptr && link.first_use(request.verb->one)) text = true;
    write(command_, std::span(&request, 1), link.server().clock, text);
    link.put(command_, std::uint64_t{round_} << 32U | number, now);
}

bool Lane::ask(Round& round, boot_clock::time_point now) {
    bool any = false;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (!round.wants(i)) continue;
        LaneLink& link = *links_[i];
        if (link.ready() && !round.useful(i, now)) {
            round.missing(i, round.asked(i), {}, false);
        } else if (link.ready()) {
            parts_[i] = {true, false, round.asked(i)};
            send(round, i, parts_[i].number, false, now);
        } else if (node(i).down()) {
            // A connection of our own that works is better news than what others found out.
            round.missing(i, round.asked(i), node(i).why(), false);
            look(i, now);
        }
        if (link.state() == LaneLink::State::closed) broke(round, i, now);
        any = any || !round.wants(i);
    }
    return any;
}

void Lane::read(Round& round, std::size_t i, boot_clock::time_point now) {
    LaneLink& link = *links_[i];
    Part& part = parts_[i];
    std::uint64_t tag = 0;
    bool demoted = false;
    while (const Reply* r = link.next(tag)) {
        demoted = demoted || (r->is(Reply::Type::error) &&
                              resp::from_reply(r->text) == resp::make(resp::Error::read_only));
        const auto number = static_cast<unsigned>(tag);
        if (tag >> 32U != round_) continue;
        if (node(i).down()) look(i, now);
        const bool current = part.asked && number == part.number;
        const bool late = round.request().late(*r);
        if (current && round.request().verb != nullptr && resp::forgotten(*r)) {
            send(round, i, number, true, now);
        } else if (current && late && !std::exchange(part.repeated, true)) {
            link.server().clock.sample(late_time(*r) * 1000, boot_clock::now());
            send(round, i, number, false, now);
        } else {
            if (current) part.asked = false;
            const bool same = same_value_ && last_links_[i] == link.generation();
            round.answered(i, number, *r, now, same);
        }
    }
    if (demoted) link.leave_replica(now);
}

boot_clock::time_point Lane::limit(Round& round, boot_clock::time_point now) {
    const auto phase = round.phase(now);
    if (phase == Round::Phase::open) return round.deadline;
    if (phase == Round::Phase::closed) return now;
    if (decided_ == boot_clock::time_point{}) decided_ = now;
    for (std::size_t i = 0; i < links_.size(); ++i)
        if ((parts_[i].asked || round.wants(i)) && !node(i).slow(now))
            return std::min(decided_ + grace, round.deadline);
    return now;
}

bool Lane::wait(Round& round, boot_clock::time_point& now, boot_clock::time_point until) {
    const auto patience = deployment_->set->options.patience;
    polled_.clear();
    polled_nodes_.clear();
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (!parts_[i].asked && !round.wants(i)) continue;
        polled_.push_back({links_[i]->descriptor(), links_[i]->events(), 0});
        polled_nodes_.push_back(i);
        until = std::min(until, links_[i]->quiet_since() + patience);
    }
    if (polled_.empty()) return false;
    const auto left = std::max<boot_clock::duration>(until - now, std::chrono::microseconds(1));
    timespec time{};
    time.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1));
    time.tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count());
    const int found = ::ppoll(polled_.data(), polled_.size(), &time, nullptr);
    now = boot_clock::now();
    return found >= 0 || errno == EINTR;
}

void Lane::drive(Round& round, boot_clock::time_point now) {
    const auto patience = deployment_->set->options.patience;
    ++round_;
    decided_ = {};
    std::fill(parts_.begin(), parts_.end(), Part{});
    for (;;) {
        auto until = limit(round, now);
        while (until > now && ask(round, now))
            until = limit(round, now);
        if (until <= now || !wait(round, now, until)) break;
        for (std::size_t k = 0; k < polled_.size(); ++k) {
            const std::size_t i = polled_nodes_[k];
            LaneLink& link = *links_[i];
            if (polled_[k].revents != 0) {
                link.advance(now);
                read(round, i, now);
            } else if (now >= link.quiet_since() + patience) {
                link.close(resp::make(resp::Error::no_answer));
            }
            const bool part = parts_[i].asked || round.wants(i);
            if (part && link.state() == LaneLink::State::closed) broke(round, i, now);
        }
    }
    round.finish(boot_clock::now());
    // Their answers will be read and dropped.
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (!parts_[i].asked) continue;
        if (decided_ != boot_clock::time_point{}) node(i).set_slow(now);
        round.missing(i, parts_[i].number, {}, true);
    }
}

void Lane::attempt(Attempt& a) noexcept {
    try {
        NodeSet& set = *deployment_->set;
        if (kept_for(a) > set.options.max_ttl || set.refused() || set.up() < set.quorum()) {
            // The engine finds the words for it.
            a.outcome = Attempt::Failed{make(Error::no_quorum)};
            return;
        }
        same_value_ = false;
        open_links(a.sent);
        AcquireRound round(deployment_->round_context(*this), a);
        round.begin(a.sent);
        set_request(&a);
        drive(round, a.sent);
        set_request(nullptr);
        if (!std::holds_alternative<Attempt::Granted>(a.outcome)) return;
        last_value_ = find_state(a.place)->value;
        last_links_.resize(links_.size());
        for (std::size_t i = 0; i < links_.size(); ++i)
            last_links_[i] = links_[i]->generation();
    } catch (const std::exception&) {
        set_request(nullptr);
        a.outcome = Attempt::NoAnswer{make_error_code(boost::system::errc::not_enough_memory)};
    }
}

void Lane::release(Held& h) noexcept {
    h.released = ReleaseResult::unreachable;  // then core releases it by the engine's connections
    try {
        const OwnerState* const place = find_state(h.place);
        const NodeSet& set = *deployment_->set;
        if (place == nullptr || set.up() < set.quorum()) return;
        same_value_ = !last_links_.empty() && last_value_ == place->value;
        open_links(h.sent);
        ReleaseRound round(deployment_->round_context(*this), h, false);
        round.begin(h.sent);
        drive(round, h.sent);
        round.report(h, boot_clock::now());
    } catch (const std::exception&) {
    }
}

}  // namespace holdfast::redlock
