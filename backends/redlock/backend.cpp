#include "backend.hpp"

#include <algorithm>

#include "errors.hpp"
#include "gate.hpp"
#include "lane.hpp"

namespace holdfast::redlock {

using spi::Attempt;
using spi::Held;

RedlockBackend::RedlockBackend(const spi::Settings& s, spi::Context c)
    : capabilities_(promises(s)),
      context_(c),
      share_(std::min(s.duration("backoff_min"), milliseconds(20))),
      set_(std::make_shared<NodeSet>(s)) {
    fabric_ = std::make_shared<Fabric>();
    fabric_->executor = c.engine;
    fabric_->set = set_;
    fabric_->warn = [sink = &context_.sink](std::string text) { sink->warn(std::move(text)); };
    set_->majority_back = [sink = &context_.sink] { sink->doubt({}); };
    for (const auto& node : set_->nodes) {
        tls_.push_back(redis::make_tls(node->shared->options));
        fabric_->lines.push_back(std::make_shared<Line>(c.engine, set_, *node, tls_.back().get()));
    }
    Scripts::all();
    if (set_->size() % 2 == 0)
        c.sink.warn(s.display() +
                    ": an even number of nodes bears no more failures than one node "
                    "less, and more can fail");
    if (!set_->options.fencing)
        c.sink.warn(s.display() +
                    ": fencing=off: leases have no token, so a store cannot refuse "
                    "the late write of a holder that was paused");
}

error_code RedlockBackend::check_name(std::string_view name) const noexcept {
    if (redis::reserved(set_->options.prefix, name)) return make_error_code(errc::bad_name);
    return {};
}

awaitable<void> RedlockBackend::attempt(std::span<Attempt* const> all) {
    const auto gate = std::make_shared<Gate>(context_.engine);
    const auto now = boot_clock::now();
    // Callers that want one name would only split the votes among themselves: one of them asks.
    std::map<std::string_view, Attempt*> first;
    std::vector<std::pair<Attempt*, Attempt*>> others;
    {
        const Together together(*fabric_);
        for (Attempt* a : all) {
            if (a->ttl > set_->options.max_ttl) {
                a->outcome = Attempt::Failed{make(Error::ttl_too_long)};
                a->detail = "the ttl is longer than max_ttl = " +
                            spi::format_duration(set_->options.max_ttl);
                continue;
            }
            const auto known = busy_.find(a->name);
            if (a->again && known != busy_.end() && now < known->second.until) {
                a->outcome = Attempt::Busy{known->second.look_again, true};
                continue;
            }
            const auto [at, fresh] = first.emplace(a->name, a);
            if (!fresh) {
                others.emplace_back(a, at->second);
                continue;
            }
            gate->enter();
            const auto round = std::make_shared<Acquire>(fabric_, *a, [gate] { gate->leave(); });
            round->start();
        }
    }
    auto task = Gate::wait(gate);
    co_await std::move(task);
    for (const auto& [a, leader] : others) {
        if (std::holds_alternative<Attempt::Granted>(leader->outcome))
            a->outcome = Attempt::Busy{std::min(a->ttl / 3, milliseconds(1000)), true};
        else
            a->outcome = leader->outcome;
        a->detail = leader->detail;
    }
    std::erase_if(busy_, [now](const auto& entry) { return entry.second.until <= now; });
    const auto until = boot_clock::now() + share_;
    for (const auto& [name, leader] : first)
        if (const auto* b = std::get_if<Attempt::Busy>(&leader->outcome))
            busy_.insert_or_assign(std::string(name), Busy{until, b->look_again});
}

awaitable<error_code> RedlockBackend::withdraw(std::span<Attempt* const> all) {
    const auto gate = std::make_shared<Gate>(context_.engine);
    std::vector<std::shared_ptr<Release>> rounds;
    {
        const Together together(*fabric_);
        for (Attempt* a : all) {
            const Place* p = find_place(a->place);
            if (p == nullptr || p->value.empty()) continue;  // every failed round undid itself
            gate->enter();
            rounds.push_back(std::make_shared<Release>(fabric_, a->name, a->place, a->ttl,
                                                       a->deadline, [gate] { gate->leave(); }));
            rounds.back()->start();
        }
    }
    auto task = Gate::wait(gate);
    co_await std::move(task);
    for (const auto& round : rounds)
        if (round->result() == ReleaseResult::unreachable) co_return make(Error::no_quorum);
    for (Attempt* a : all)
        if (Place* p = find_place(a->place)) p->value.clear();
    co_return error_code();
}

awaitable<void> RedlockBackend::renew(std::span<Held* const> all) {
    const auto gate = std::make_shared<Gate>(context_.engine);
    {
        const Together together(*fabric_);
        for (Held* h : all) {
            gate->enter();
            const auto round = std::make_shared<Renew>(fabric_, *h, [gate] { gate->leave(); });
            round->start();
        }
    }
    auto task = Gate::wait(gate);
    co_await std::move(task);
}

awaitable<void> RedlockBackend::release(std::span<Held* const> all) {
    const auto gate = std::make_shared<Gate>(context_.engine);
    std::vector<std::shared_ptr<Release>> rounds;
    {
        const Together together(*fabric_);
        for (const Held* h : all) {
            gate->enter();
            rounds.push_back(std::make_shared<Release>(fabric_, h->name, h->place, h->ttl,
                                                       h->deadline, [gate] { gate->leave(); }));
            rounds.back()->start();
        }
    }
    auto task = Gate::wait(gate);
    co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i]->released = rounds[i]->result();
}

std::unique_ptr<spi::Lane> RedlockBackend::open_lane() {
    if (set_->options.tls) return nullptr;
    return std::make_unique<Lane>(fabric_);
}

awaitable<void> RedlockBackend::close() {
    // What is owed at nodes that answer takes one more round trip; the others free it by its ttl.
    const auto until = boot_clock::now() + milliseconds(150);
    const auto owing = [this] {
        return std::any_of(fabric_->lines.begin(), fabric_->lines.end(),
                           [](const auto& line) { return line->owes(); });
    };
    for (const auto& line : fabric_->lines)
        line->hurry();
    asio::steady_timer pause(context_.engine);
    while (owing() && boot_clock::now() < until) {
        pause.expires_after(milliseconds(2));
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await pause.async_wait(token);
    }
    for (const auto& line : fabric_->lines)
        line->close();
}

}  // namespace holdfast::redlock
