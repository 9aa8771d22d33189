#include "ground.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>

#include "holdfast/spi/owner.hpp"

namespace oracle {
namespace {

using namespace std::chrono_literals;
using hf::boot_clock;

constexpr hf::milliseconds request_time = 5s;

}  // namespace

void Ground::Events::wake(std::string_view owner) {
    const std::lock_guard hold(mutex);
    woken.emplace(owner);
}

Ground::Ground(const std::string& url) : clients_(clients) {
    hf::Diagnostics d;
    const auto chosen = hf::parse_url(url, spi::Registry::linked(), d);
    if (!chosen) throw std::runtime_error(d.text());
    for (Client& c : clients_) {
        c.backend =
            chosen->backend->make(chosen->settings, spi::Context{io_.get_executor(), *c.events});
        c.lane = c.backend->open_lane();
    }
}

Ground::~Ground() {
    for (Client& c : clients_) {
        c.lane.reset();
        run(c.backend->close());
    }
    io_.restart();
    io_.poll();
}

void Ground::run(spi::awaitable<void> verb) {
    std::optional<std::exception_ptr> ended;
    boost::asio::co_spawn(io_, std::move(verb), [&](std::exception_ptr e) { ended = e; });
    io_.restart();
    while (!ended) {
        if (io_.stopped()) io_.restart();
        io_.run_one_for(10ms);
    }
    if (*ended) std::rethrow_exception(*ended);
}

template <class T>
T Ground::run(spi::awaitable<T> call) {
    std::optional<T> out;
    run([](spi::awaitable<T> asked, std::optional<T>& into) -> spi::awaitable<void> {
        into.emplace(co_await std::move(asked));
    }(std::move(call), out));
    return std::move(*out);
}

spi::Attempt Ground::next_attempt(const std::string& name, Acquisition& of) const {
    spi::Attempt a;
    a.name = name;
    a.owner = of.owner;
    a.units = of.units;
    a.kind = of.units.permits()                  ? hf::Kind::semaphore
             : of.units.mode == hf::Mode::shared ? hf::Kind::shared_mutex
                                                 : hf::Kind::mutex;
    a.ttl = of.ttl;
    a.lock_delay = of.lock_delay;
    a.min_hold = of.min_hold;
    a.queue = of.queue;
    a.repeated = std::exchange(of.asked_before, true);
    a.place = of.place;
    a.sent = boot_clock::now();
    a.deadline = a.sent + request_time;
    return a;
}

spi::Attempt Ground::attempt(int client, const std::string& name, Acquisition& of, bool lane) {
    Client& c = clients_[static_cast<std::size_t>(client)];
    spi::Attempt a = next_attempt(name, of);
    {
        const std::lock_guard hold(c.events->mutex);
        c.events->woken.erase(of.owner);
    }
    if (lane && c.lane) {
        c.lane->attempt(a);
    } else {
        spi::Attempt* items[] = {&a};
        run(c.backend->attempt(items));
    }
    of.place = a.place;
    if (const auto* g = std::get_if<spi::Attempt::Granted>(&a.outcome)) of.token = g->token;
    return a;
}

void Ground::withdraw(int client, const std::string& name, Acquisition& of) {
    Client& c = clients_[static_cast<std::size_t>(client)];
    for (int again = 0;; ++again) {
        spi::Attempt a = next_attempt(name, of);
        spi::Attempt* items[] = {&a};
        run(c.backend->withdraw(items));
        if (!a.withdrawal) return;
        repeat(again, "withdraw: " + a.withdrawal.message() + " " + a.detail);
    }
}

spi::Held Ground::held(const std::string& name, const Acquisition& of) const {
    spi::Held h;
    h.name = name;
    h.owner = of.owner;
    h.token = of.token;
    h.units = of.units;
    h.ttl = of.ttl;
    h.lock_delay = of.lock_delay;
    h.min_hold = of.min_hold;
    h.place = of.place;
    h.sent = boot_clock::now();
    h.deadline = h.sent + request_time;
    return h;
}

spi::Held Ground::renew(int client, const std::string& name, Acquisition& of) {
    for (int again = 0;; ++again) {
        spi::Held h = held(name, of);
        spi::Held* items[] = {&h};
        run(clients_[static_cast<std::size_t>(client)].backend->renew(items));
        of.place = h.place;
        if (h.renewal != spi::Held::Renewal::unknown) return h;
        repeat(again, "renew: " + h.renewal_error.message() + " " + h.detail);
    }
}

spi::Held Ground::release(int client, const std::string& name, Acquisition& of, bool abandon,
                          bool lane) {
    Client& c = clients_[static_cast<std::size_t>(client)];
    for (int again = 0;; ++again) {
        spi::Held h = held(name, of);
        if (abandon) h.outcome = hf::Outcome::abandoned;
        if (lane && c.lane) {
            c.lane->release(h);
        } else {
            spi::Held* items[] = {&h};
            run(c.backend->release(items));
        }
        of.place = h.place;
        if (h.released != hf::ReleaseResult::unreachable) return h;
        repeat(again, "release: " + h.release_error.message() + " " + h.detail);
    }
}

spi::Answer<std::vector<hf::Broken>> Ground::break_lock(const std::string& name,
                                                        const hf::BreakOptions& options) {
    return run(
        clients_.front().backend->break_lock(name, options, boot_clock::now() + request_time));
}

spi::Answer<std::vector<hf::Holder>> Ground::request_release(const std::string& name,
                                                             const hf::HolderFilter& which) {
    return run(
        clients_.front().backend->request_release(name, which, boot_clock::now() + request_time));
}

hf::Inspection Ground::inspect(const std::string& name) {
    auto found = run(clients_.front().backend->inspect(name, boot_clock::now() + request_time));
    if (!found)
        throw Refused("inspect: " + found.error().why.message() + " " + found.error().detail);
    return *found;
}

void Ground::repeat(int times, const std::string& why) {
    if (times == 100) throw Refused(why);
    settle();
}

bool Ground::woken(const std::string& owner) {
    for (int i = 0; i < 200; ++i) {
        if (was_woken(owner)) return true;
        settle();
    }
    return false;
}

bool Ground::was_woken(const std::string& owner) {
    return std::any_of(clients_.begin(), clients_.end(), [&](Client& c) {
        const std::lock_guard hold(c.events->mutex);
        return c.events->woken.contains(owner);
    });
}

void Ground::warm_up() {
    for (int i = 0; i < clients; ++i) {
        Acquisition of;
        of.owner = spi::make_owner("oracle");
        of.ttl = 2s;
        (void)attempt(i, "other", of, false);
        withdraw(i, "other", of);
    }
}

void Ground::settle() {
    io_.restart();
    io_.run_one_for(10ms);
}

void Ground::rest(hf::milliseconds time) {
    bool over = false;
    boost::asio::steady_timer timer(io_, time);
    timer.async_wait([&](const hf::error_code&) { over = true; });
    io_.restart();
    while (!over)
        io_.run_one();
}

}  // namespace oracle
