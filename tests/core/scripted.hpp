// A backend whose answers a test decides: what, when, and for how long. Core's own behaviour can be
// seen by it alone, without the faults of a network.
#pragma once
#include <atomic>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heard.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/spi/registry.hpp"

namespace scripted {

namespace hf = holdfast;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;

/// What the server does; by default it grants everything to everybody at once. Set before it is
/// asked; the counts may be read at any time.
struct Server {
    /// Decides at once; the answer comes `*_takes` later.
    std::function<void(spi::Attempt&)> attempt = grants;
    std::function<hf::error_code(const spi::Attempt&)> withdraw;
    std::function<void(spi::Held&)> renew, release;
    std::function<spi::Answer<spi::Survey>()> survey;  ///< of any name
    std::function<const void*(std::string_view name)> server_of;
    std::function<void(std::span<spi::Attempt* const>)> asked_together;
    std::atomic<std::chrono::milliseconds> attempt_takes{0ms}, renew_takes{0ms};
    std::atomic<std::chrono::milliseconds> release_takes{0ms};  // the engine's
    std::atomic<std::chrono::milliseconds> close_takes{0ms}, survey_takes{0ms};
    /// It does one after the other, and each attempt of the engine's takes so long.
    std::chrono::microseconds in_turn{0};
    bool has_lane = false;
    std::atomic<int> lanes_refused{0};  // so many cannot be opened
    hf::Capabilities capabilities;

    std::atomic<int> surveys{0}, looks{0};  // begun, and those whose answer is made
    std::atomic<int> watches{0};            // those that have not ended
    std::atomic<int> attempts{0}, on_lanes{0}, withdrawals{0}, renewals{0}, releases{0};
    std::atomic<int> under_way{0}, most_under_way{0};  // attempts of the engine
    std::atomic<spi::BackendEvents*> events{nullptr};

    static void grants(spi::Attempt& a) {
        a.outcome = spi::Attempt::Granted{hf::FencingToken{1}, hf::PreviousHolder::none, a.ttl, {}};
    }
    void ask(spi::Attempt& a) {
        ++attempts;
        attempt(a);
    }
};

class Backend final : public spi::Backend {
public:
    Backend(std::shared_ptr<Server> s, spi::Context c)
        : capabilities_(s->capabilities), s_(std::move(s)), context_(c) {
        s_->events = &c.events;
    }
    ~Backend() override { s_->events = nullptr; }

    const hf::Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 100; }
    const void* server_of(std::string_view name) const noexcept override {
        return s_->server_of ? s_->server_of(name) : nullptr;
    }

    spi::awaitable<void> attempt(std::span<spi::Attempt* const> items) override {
        if (s_->asked_together) s_->asked_together(items);
        const int count = static_cast<int>(items.size());
        s_->most_under_way = std::max(s_->most_under_way.load(), s_->under_way += count);
        for (spi::Attempt* a : items)
            s_->ask(*a);
        std::chrono::nanoseconds takes = s_->attempt_takes.load();
        if (s_->in_turn > 0us) {
            const auto now = hf::boot_clock::now();
            free_ = std::max(free_, now) + s_->in_turn * count;
            takes = free_ - now;
        }
        auto latest = items.front()->deadline;
        for (const spi::Attempt* a : items)
            latest = std::max(latest, a->deadline);
        const auto left = latest - hf::boot_clock::now();
        if (takes > 0ns && takes > left)  // as backends do: it ends by itself, and nobody knows
            for (spi::Attempt* a : items)
                a->outcome = spi::Attempt::NoAnswer{hf::make_error_code(hf::errc::unavailable)};
        auto pause = wait(std::min(takes, left));
        co_await std::move(pause);
        s_->under_way -= count;
    }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const> items) override {
        for (spi::Attempt* a : items) {
            ++s_->withdrawals;
            a->withdrawal = s_->withdraw ? s_->withdraw(*a) : hf::error_code();
        }
        co_return;
    }
    spi::awaitable<void> renew(std::span<spi::Held* const> items) override {
        for (spi::Held* h : items) {
            ++s_->renewals;
            h->renewal = spi::Held::Renewal::renewed;
            if (s_->renew) s_->renew(*h);
        }
        auto pause = wait(s_->renew_takes.load());
        co_await std::move(pause);
    }
    spi::awaitable<void> release(std::span<spi::Held* const> items) override {
        for (spi::Held* h : items)
            release_one(*h);
        auto pause = wait(s_->release_takes.load());
        co_await std::move(pause);
    }
    std::unique_ptr<spi::Lane> open_lane() override;
    spi::awaitable<spi::Answer<spi::Survey>> survey(std::string_view,
                                                    hf::boot_clock::time_point) override {
        ++s_->surveys;
        auto pause = wait(s_->survey_takes.load(), false);
        co_await std::move(pause);
        auto found = s_->survey ? s_->survey() : spi::Answer<spi::Survey>(spi::Survey());
        ++s_->looks;
        co_return found;
    }
    void watch(std::string_view, bool on) override { s_->watches += on ? 1 : -1; }
    spi::awaitable<void> close() override {
        for (auto* timer : timers_)
            timer->cancel();
        auto pause = wait(s_->close_takes.load());
        co_await std::move(pause);
    }

    void release_one(spi::Held& h) {
        ++s_->releases;
        h.released = hf::ReleaseResult::released;
        if (s_->release) s_->release(h);
    }

private:
    /// `ends_early`: with close().
    spi::awaitable<void> wait(std::chrono::nanoseconds time, bool ends_early = true) {
        if (time <= 0ns) co_return;
        boost::asio::steady_timer timer(context_.engine, time);
        if (ends_early) timers_.insert(&timer);
        hf::error_code ignored;
        auto over =
            timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
        co_await std::move(over);
        timers_.erase(&timer);
    }

    const hf::Capabilities capabilities_;
    const std::shared_ptr<Server> s_;
    const spi::Context context_;
    hf::boot_clock::time_point free_;
    std::set<boost::asio::steady_timer*> timers_;
};

class Lane final : public spi::Lane {
public:
    Lane(std::shared_ptr<Server> s, Backend& b) : s_(std::move(s)), backend_(&b) {}
    void attempt(spi::Attempt& a) noexcept override {
        ++s_->on_lanes;
        s_->ask(a);
        const auto answered = hf::boot_clock::now() + s_->attempt_takes.load();
        holdfast::lab::wait_until([&] { return hf::boot_clock::now() >= answered; }, 60s, "time");
    }
    void release(spi::Held& h) noexcept override { backend_->release_one(h); }

private:
    const std::shared_ptr<Server> s_;
    Backend* const backend_;
};

inline std::unique_ptr<spi::Lane> Backend::open_lane() {
    if (!s_->has_lane) return nullptr;
    if (s_->lanes_refused > 0 && s_->lanes_refused-- > 0) throw std::bad_alloc();
    return std::make_unique<Lane>(s_, *this);
}

using test_support::Heard;

/// Where a client finds it.
inline const spi::Registry& registry(const std::shared_ptr<Server>& server) {
    spi::Descriptor d;
    d.name = "scripted";
    d.schemes = {"scripted"};
    d.summary = "a test's own";
    d.example = "scripted:";
    d.hosts = spi::Descriptor::Hosts::none;
    d.path = spi::Descriptor::Path::optional;
    d.capabilities = [server](const spi::Settings&) { return server->capabilities; };
    d.make = [server](const spi::Settings&, spi::Context c) -> std::unique_ptr<spi::Backend> {
        return std::make_unique<Backend>(server, c);
    };
    // Clients refer to their backend's description for as long as they live.
    static std::vector<std::unique_ptr<spi::Registry>> registries;
    registries.push_back(std::make_unique<spi::Registry>());
    registries.back()->add(std::move(d));
    return *registries.back();
}

/// A client of it. `query`: "ttl=1s&request_timeout=100ms".
inline hf::Client open(const std::shared_ptr<Server>& server, const std::string& query = {},
                       hf::milliseconds grace = 1000ms, hf::EventSink events = {}) {
    hf::Diagnostics words;
    auto client = hf::Client::open("scripted:" + (query.empty() ? query : "?" + query),
                                   {.registry = &registry(server),
                                    .close_grace = grace,
                                    .events = std::move(events),
                                    .diagnostics = &words});
    if (!client) throw std::runtime_error(words.text());
    return *std::move(client);
}

}  // namespace scripted
