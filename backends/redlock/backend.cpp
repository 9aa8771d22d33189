#include "backend.hpp"

#include <algorithm>

#include "../resp/errors.hpp"
#include "../resp/keys.hpp"
#include "errors.hpp"
#include "lane.hpp"

namespace holdfast::redlock {

using spi::Attempt;
using spi::Held;

namespace {

// So long may subscriptions delay an attempt, once.
constexpr milliseconds subscribe_time{250};

}  // namespace

RedlockBackend::RedlockBackend(const spi::Settings& s, spi::Context c)
    : capabilities_(promises(s)),
      context_(c),
      share_(std::min(s.duration("backoff_min"), milliseconds(20))),
      set_(std::make_shared<NodeSet>(s)) {
    deployment_ = std::make_shared<Deployment>();
    deployment_->executor = c.engine;
    deployment_->set = set_;
    deployment_->warn = [events = &context_.events](std::string text) {
        events->warn(std::move(text));
    };
    set_->majority_back = [events = &context_.events] { events->at_risk({}); };
    tls_ = tls::make_context(set_->nodes.front()->server->target.tls, deployment_->warn);
    for (const auto& node : set_->nodes) {
        for (const std::string& text : resp::exposures(node->server->target))
            c.events.warn(text);
        deployment_->connections.push_back(
            std::make_shared<NodeConnection>(c.engine, set_, *node, tls_.get()));
        node->server->on_move = [d = deployment_.get(), events = &context_.events, i = node->index](
                                    const std::string& from, const std::string& to) {
            d->connections[i]->leave();
            if (d->listening) d->listening->leave(i);
            events->moved(from, to);
        };
    }
    if (set_->options.fencing) {
        deployment_->listening = std::make_unique<Listening>(c, *set_, tls_.get());
        set_->left_replica = [d = deployment_.get()](std::size_t node) {
            d->listening->reconnect(node);
        };
    }
    Scripts::all();
    if (set_->size() % 2 == 0)
        c.events.warn(s.display() +
                      ": an even number of nodes tolerates no more failures than one node "
                      "less");
    if (!set_->options.fencing)
        c.events.warn(s.display() +
                      ": fencing=off: leases have no token, so a store cannot refuse "
                      "the late write of a paused holder");
}

// Attempts that are alike are answered by the same request. Readers do not exclude each other, and
// an attempt with units has a mark of its own.
bool RedlockBackend::alike(const Attempt& a) const noexcept {
    const OwnerState* const p = find_state(a.place);
    if (stands(a) && deployment_->told()) return false;
    return a.units.exclusive() && (p == nullptr || !p->units);
}

// Nobody waits for it: the mark lapses by itself soon.
void RedlockBackend::forget_mark(const Attempt& a) {
    OwnerState& p = *find_state(a.place);
    Keys keys;
    keys.assign(set_->options.prefix, a.name);
    const Ask leave =
        leave_ask(keys, std::string(a.owner), std::exchange(p.marked, {}), OwnerState::never);
    for (const auto& line : deployment_->connections) {
        NodeConnection::Request r{leave};
        r.done = [](const Reply*, const error_code&, bool) {};
        line->ask(std::move(r), false);
    }
}

error_code RedlockBackend::check_name(std::string_view name) const noexcept {
    if (resp::reserved(set_->options.prefix, name)) return resp::make(resp::Error::reserved_name);
    return {};
}

awaitable<void> RedlockBackend::attempt(std::span<Attempt* const> all) {
    if (std::any_of(all.begin(), all.end(), [this](const Attempt* a) { return stands(*a); })) {
        auto task = deployment_->listening->ready(boot_clock::now() + subscribe_time);
        co_await std::move(task);
    }
    VerbRounds rounds(deployment_, all.size());
    const auto now = boot_clock::now();
    // Callers that want one name would only split the votes among themselves: one of them asks.
    std::map<std::string_view, Attempt*> first;
    std::vector<std::pair<Attempt*, Attempt*>> others;
    const auto begin_all = [&] {
        for (Attempt* a : all) {
            if (kept_for(*a) > set_->options.max_ttl) {
                a->outcome = Attempt::Failed{make(Error::ttl_too_long)};
                a->detail = "the ttl, with lock_delay, or min_hold is longer than max_ttl = " +
                            spi::format_duration(set_->options.max_ttl);
                continue;
            }
            const auto known = busy_.find(a->name);
            if (a->queue && known != busy_.end() && now < known->second.waited_for)
                state_of(a->place).units = true;
            if (alike(*a)) {
                if (a->repeated && known != busy_.end() && now < known->second.until) {
                    a->outcome = Attempt::Busy{known->second.look_within, true};
                    continue;
                }
                const auto [at, fresh] = first.emplace(a->name, a);
                if (!fresh) {
                    others.emplace_back(a, at->second);
                    continue;
                }
            }
            if (a->queue && deployment_->listening) deployment_->listening->add(*a);
            rounds.begin(std::make_shared<AcquireRound>(deployment_->round_context(), *a));
        }
    };
    auto task = rounds.run(begin_all);
    co_await std::move(task);
    for (const auto& [a, leader] : others) {
        if (a->queue && deployment_->told())
            a->outcome = Attempt::Busy{milliseconds(1), false};  // to leave its mark
        else if (std::holds_alternative<Attempt::Granted>(leader->outcome))
            a->outcome = Attempt::Busy{Attempt::Busy::unnotified(a->ttl), true};
        else
            a->outcome = leader->outcome;
        a->detail = leader->detail;
    }
    for (const Attempt* a : all)
        if (deployment_->listening && std::holds_alternative<Attempt::Granted>(a->outcome))
            deployment_->listening->forget(a->owner);
    remember_busy(all, first, now);
}

void RedlockBackend::remember_busy(std::span<Attempt* const> all,
                                   const std::map<std::string_view, Attempt*>& asked,
                                   boot_clock::time_point now) {
    std::erase_if(busy_, [now](const auto& entry) {
        return std::max(entry.second.until, entry.second.waited_for) <= now;
    });
    const auto after = boot_clock::now();
    for (const auto& [name, leader] : asked)
        if (const auto* b = std::get_if<Attempt::Busy>(&leader->outcome)) {
            Busy& known = busy_[std::string(name)];
            known.until = after + share_;
            known.look_within = b->look_within;
        }
    for (const Attempt* a : all)
        if (stands(*a) && deployment_->told() && std::holds_alternative<Attempt::Busy>(a->outcome))
            busy_[std::string(a->name)].waited_for = after + milliseconds(1000);
}

awaitable<void> RedlockBackend::withdraw(std::span<Attempt* const> all) {
    VerbRounds under_way(deployment_, all.size());
    std::vector<std::shared_ptr<ReleaseRound>> rounds(all.size());
    const auto begin_all = [&] {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Attempt* a = all[i];
            const OwnerState* p = find_state(a->place);
            if (p == nullptr) continue;
            if (p->value.empty()) {  // every failed round undid itself
                if (!p->marked.empty()) forget_mark(*a);
                continue;
            }
            rounds[i] = std::make_shared<ReleaseRound>(deployment_->round_context(), *a);
            under_way.begin(rounds[i]);
        }
    };
    auto task = under_way.run(begin_all);
    co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i]->withdrawal = {};
        if (deployment_->listening) deployment_->listening->forget(all[i]->owner);
        if (rounds[i] && rounds[i]->result() == ReleaseResult::unreachable)
            all[i]->withdrawal = make(Error::no_quorum);
        else if (OwnerState* p = find_state(all[i]->place))
            p->value.clear();
    }
}

awaitable<void> RedlockBackend::renew(std::span<Held* const> all) {
    VerbRounds rounds(deployment_, all.size());
    const auto begin_all = [&] {
        for (Held* h : all)
            rounds.begin(std::make_shared<RenewRound>(deployment_->round_context(), *h));
    };
    auto task = rounds.run(begin_all);
    co_await std::move(task);
}

awaitable<void> RedlockBackend::release(std::span<Held* const> all) {
    VerbRounds under_way(deployment_, all.size());
    std::vector<std::shared_ptr<ReleaseRound>> rounds;
    const auto begin_all = [&] {
        for (const Held* h : all) {
            rounds.push_back(
                std::make_shared<ReleaseRound>(deployment_->round_context(), *h, true));
            under_way.begin(rounds.back());
        }
    };
    auto task = under_way.run(begin_all);
    co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i)
        rounds[i]->report(*all[i], boot_clock::now());
}

std::unique_ptr<spi::Lane> RedlockBackend::open_lane() {
    return std::make_unique<Lane>(deployment_, tls_);
}

awaitable<void> RedlockBackend::close() {
    if (deployment_->listening) deployment_->listening->close();
    deployment_->stop();
    // What is owed at nodes that answer takes one more round trip, and so does a release that only
    // a majority has answered; the others free it by its ttl.
    const auto until = boot_clock::now() + closing_time;
    const auto owing = [this] {
        return std::any_of(deployment_->connections.begin(), deployment_->connections.end(),
                           [](const auto& line) { return line->has_pending(); });
    };
    for (const auto& line : deployment_->connections)
        line->send_now();
    asio::steady_timer pause(context_.engine);
    while (owing() && boot_clock::now() < until) {
        pause.expires_after(milliseconds(2));
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await pause.async_wait(token);
    }
    for (const auto& line : deployment_->connections)
        line->close();
}

}  // namespace holdfast::redlock
