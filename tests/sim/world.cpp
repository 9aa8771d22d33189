#include "world.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "history.hpp"
#include "listener.hpp"
#include "succession.hpp"
#include "worker.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos patience = 90 * second;  ///< then everything ends, at the latest so much later
constexpr std::uint64_t most_steps = 300'000;  ///< of all threads, in a second

/// It touches only this client, its connections or its machine.
bool of_client(Fault::Kind kind) {
    using enum Fault::Kind;
    return kind == slow || kind == cut || kind == break_off || kind == freeze || kind == kill ||
           kind == starve || kind == set_clock;
}

}  // namespace

World::World(const std::string& backend, Options o)
    : kernel(o.seed),
      options(std::move(o)),
      history_(std::make_unique<History>(*this)),
      succession_(std::make_unique<Succession>(*this)) {
    kernel.tracing = options.tracing;
    deployment_ = make_deployment(backend, kernel, options);
    if (!deployment_) throw std::runtime_error("there is no simulation of " + backend);
    servers_ = deployment_->servers();
    plan();
    make_faults();
}

World::~World() = default;

void World::fail(const std::string& why) {
    if (!violation_.empty()) return;
    violation_ = why;
    trace("VIOLATION", why);
}

bool World::breaks_now(std::size_t name) const {
    return history_->may_be_broken(name, kernel.now(), true);
}

void World::settle(const Capabilities& has) {
    notified_ = notified_ && has.has(Capability::notified);
    for (Name& n : names) {
        if (!has.has(Capability::min_hold)) n.options.min_hold = milliseconds(0);
        if (!has.has(Capability::lock_delay)) n.options.lock_delay = milliseconds(0);
    }
}

void World::begin(const Fault& f) {
    trace("FAULT", to_string(f));
    troubled_until_ = std::max(troubled_until_, kernel.now() + f.lasts);
    User& u = *users[f.client];
    Nanos& troubled = of_client(f.kind) ? u.troubled_until : servers_troubled_until_;
    troubled = std::max(troubled, kernel.now() + f.lasts);
    Route* route = u.routes.empty() ? nullptr : u.routes[f.server % u.routes.size()].get();
    switch (f.kind) {
        case Fault::Kind::slow:
            route->slow(f.how % 2 == 0 ? 30 * ms : 400 * ms);
            break;
        case Fault::Kind::cut:
            if (f.how % 3 != 1) route->cut(to_server);
            if (f.how % 3 != 0) route->cut(to_client);
            break;
        case Fault::Kind::break_off:
            for (const auto& weak : std::vector(route->connections))
                if (const auto c = weak.lock())
                    if (kernel.random().chance(700)) c->break_off(f.how % 3 != 0, f.how % 3 != 1);
            break;
        case Fault::Kind::freeze: {
            const Nanos until = std::max(u.process.frozen_until, kernel.now() + f.lasts);
            u.process.frozen += until - std::max(u.process.frozen_until, kernel.now());
            u.process.frozen_until = until;
            break;
        }
        case Fault::Kind::starve: {
            // It ends with the other faults.
            const Nanos until =
                std::max(u.process.starved_until, std::min(kernel.now() + f.lasts, trouble_lasts));
            u.process.frozen += until - std::max(u.process.starved_until, kernel.now());
            u.process.starved_until = until;
            kernel.starve(u.process, f.how, until);
            break;
        }
        case Fault::Kind::set_clock:
            u.process.wall = (f.how % 2 == 0 ? 1 : -1) * static_cast<Nanos>(f.how) * second;
            break;
        case Fault::Kind::kill:
            u.process.dead = u.killed = killed_ = true;
            for (const auto& r : u.routes)
                for (const auto& weak : std::vector(r->connections))
                    if (const auto c = weak.lock()) c->break_off(false, true);
            break;
        default:
            deployment_->begin(f);
            for (const std::size_t server : deployment_->beyond(f)) {
                u.routes[server]->cut(to_server);
                u.routes[server]->cut(to_client);
            }
    }
}

void World::end(const Fault& f) {
    User& u = *users[f.client];
    Route* route = u.routes.empty() ? nullptr : u.routes[f.server % u.routes.size()].get();
    for (const std::size_t server : deployment_->beyond(f)) {
        u.routes[server]->heal(to_server);
        u.routes[server]->heal(to_client);
    }
    if (f.kind == Fault::Kind::slow) route->slow(0);
    if (f.kind == Fault::Kind::cut) {
        trace("healed", to_string(f));
        route->heal(to_server);
        route->heal(to_client);
    }
}

Route* World::dial(const Process& p, const std::string& host, std::uint16_t port) {
    for (const auto& u : users)
        for (std::size_t i = 0; &u->process == &p && !u->killed && i < servers_.size(); ++i)
            if (servers_[i].host == host && servers_[i].port == port) return u->routes[i].get();
    return nullptr;
}

/// What a client finds when nothing should be there.
std::string World::inspect(User& u) {
    for (const Name& n : names) {
        auto seen = u.client->inspect(n.text);
        // The first one may learn that its connection had ended.
        if (!seen) seen = u.client->inspect(n.text);
        if (!seen && far_ > 0) return {};  // it has to connect in one request time-out
        if (!seen) return n.text + ": " + seen.error().message();
        // Where requests carry no deadline, one may have come late.
        if (!seen->holders.empty() && !deployment_->acquires_late())
            return n.text + " is held by " + seen->holders[0].owner;
        if (!seen->waiters.empty() && !killed_)
            return n.text + " is waited for by " + seen->waiters[0].owner;
    }
    return {};
}

void World::make_locks(User& u) {
    for (const Name& n : names) {
        auto lock = u.client->make_lock(n.text, n.options);
        if (!lock) return fail("make_lock: " + lock.error().message());
        u.locks.push_back(std::move(*lock));
        LockOptions next = n.options;
        if (n.next_limit > 0) next.limit = n.next_limit;
        auto later = u.client->make_lock(n.text, next);
        if (!later) return fail("make_lock: " + later.error().message());
        u.next_locks.push_back(std::move(*later));
        make_more(u, n);
    }
}

void World::make_more(User& u, const Name& n) {
    u.reentrant.push_back(nullptr);
    u.candidates.push_back(nullptr);
    if (has(Feature::owners) && !n.elects && n.options.kind != Kind::semaphore)
        u.reentrant.back() =
            std::make_unique<Reentrant<int>>(u.client->make_lock(n.text, n.options));
    if (!n.elects) return;
    auto made = u.client->make_election(n.text, n.options);
    if (!made) return fail("an election: " + made.error().message());
    u.candidates.back() = std::make_unique<Candidate>(std::move(*made));
}

void World::check_move(const User& u, const std::string& event) {
    // What its own troubles kept from it may be news to it now.
    if (u.troubled_until > 0 && kernel.now() < u.troubled_until + 2 * second) return;
    if (const auto why = deployment_->misled(event); !why.empty())
        fail(u.process.name + ": " + why);
}

void World::live(User& u) {
    ClientOptions o;
    u.loop = std::make_unique<boost::asio::io_context>(1);
    auto work = std::make_optional(boost::asio::make_work_guard(*u.loop));
    Thread* loop = kernel.start(u.process, "loop", [&u] { u.loop->run(); });
    if (with_loop_) o.executor = u.loop->get_executor();
    if (with_events_)
        o.events = [this, &u](const Event& e) {
            trace(u.process.name, "event: " + std::string(to_string(e.kind)) + " " + e.name + " " +
                                      e.owner.substr(0, 6) + " " +
                                      (e.reason ? e.reason.message() : std::string()) + e.text);
            if (e.kind == Event::Kind::lost) told_[e.owner].now(u.process, e.reason);
            if (e.kind == Event::Kind::moved) check_move(u, e.text);
            if (calm && e.kind == Event::Kind::at_risk)
                fail(u.process.name + ": a lease is at risk, and nothing is wrong");
        };
    Diagnostics diagnostics;
    o.diagnostics = &diagnostics;
    const std::string own_url = deployment_->url_of_user(*this, u.number);
    auto opened = Client::open(own_url.empty() ? url_ : own_url, o);
    if (!opened) return fail("open: " + diagnostics.text());
    u.client.emplace(std::move(*opened));
    settle(u.client->capabilities());
    make_locks(u);
    if (!violation_.empty()) return;
    std::vector<Thread*> workers;
    for (unsigned i = 0; i < workers_; ++i) {
        ++u.at_work;
        workers.push_back(kernel.start(u.process, "worker" + std::to_string(i), [this, &u] {
            Worker(*this, u).run();
            --u.at_work;
        }));
    }
    while (!closing_)
        kernel.block(never);
    if (!u.killed)
        if (const auto left = inspect(u); !left.empty()) fail(u.process.name + " sees: " + left);
    const Nanos from = kernel.now(), frozen = u.process.frozen;
    u.client->close();
    const Nanos time = kernel.now() - from - (u.process.frozen - frozen);
    if (!u.killed && time > 3200 * ms + 2 * far_)
        fail(u.process.name + ": close took " + std::to_string(time / ms) + " ms");
    for (Thread* t : workers)
        kernel.join(t);
    trace(u.process.name, "closed");
    u.locks.clear();
    u.next_locks.clear();
    u.reentrant.clear();
    u.candidates.clear();
    u.client.reset();
    work.reset();
    kernel.join(loop);
    u.loop.reset();
    trace(u.process.name, "gone");
}

template <class Condition>
bool World::go_until(Nanos cap, Condition condition) {
    const Nanos until = kernel.now() + cap;
    kernel.at(until, [] {});  // so that no step goes far beyond it
    while (violation_.empty()) {
        if (condition()) return true;
        if (kernel.now() >= until || !kernel.step()) return false;
        if (options.steps) options.steps->store(kernel.steps(), std::memory_order_relaxed);
        if (!beliefs_.empty()) check();
        if (!owed_.empty()) check_owed();
        check_waiting();
        if (calm) check_prompt();
        if (!listeners_.empty()) check_told(false);
        if (auto why = deployment_->wrong(); !why.empty()) fail(why);
        if (kernel.now() >= last_second_ + second) {
            last_second_ = kernel.now();
            last_steps_ = kernel.steps();
        } else if (kernel.steps() > last_steps_ + most_steps) {
            fail("it does not come to rest");
        }
    }
    return false;
}

void World::check_at_end() {
    const bool ended = go_until(patience, [this] {
        return std::all_of(users.begin(), users.end(),
                           [](const auto& u) { return u->killed || u->at_work == 0; });
    });
    if (!ended) return fail("calls did not end: " + kernel.threads_left());
    // Within a second of the server being reachable, and what a killed client had by its ttl.
    const Nanos rest =
        deployment_->rest() + 6 * far_ +
        (killed_ ? ttl.count() * ms + delay_ + deployment_->mourning() : 0) +
        (history_->any_break() || bounded_ ? deployment_->lasts(ttl.count() * ms + delay_) : 0);
    go_until(rest, [] { return false; });
    check_told(true);
    if (!violation_.empty()) return;
    if (const auto left = deployment_->left(names, killed_); !left.empty())
        return fail("left behind: " + left);
    closing_ = true;
    for (const auto& u : users) {
        if (u->killed) kernel.revive(u->process);
        kernel.wake(u->main);
    }
    if (!go_until(patience, [this] { return kernel.threads() == 0; }))
        return fail("threads did not end: " + kernel.threads_left());
    if (system.descriptors.open() != 0)
        fail("descriptors left open: " + std::to_string(system.descriptors.open()));
}

Report World::run() {
    system.dial = [this](const Process& p, const std::string& host, std::uint16_t port) {
        return dial(p, host, port);
    };
    for (std::size_t i = 0; i < faults_.size(); ++i) {
        if (options.without.count(i) != 0) continue;
        const Fault& f = faults_[i];
        kernel.at(f.from, [this, &f] { begin(f); });
        using enum Fault::Kind;
        if (f.kind == slow || f.kind == cut || f.kind == promote)
            kernel.at(f.from + f.lasts, [this, &f] { end(f); });
    }
    for (const auto& u : users)
        u->main = kernel.start(u->process, "main", [this, &u] { live(*u); });
    go_until(trouble_lasts, [] { return false; });
    if (violation_.empty()) {
        trace("END", "everything is healed; nobody begins anything new");
        stopping_ = true;
        for (const auto& u : users)
            for (const auto& r : u->routes) {
                r->slow(0);
                r->heal(to_server);
                r->heal(to_client);
            }
        deployment_->heal();
        check_at_end();
    }
    Report out;
    out.steps = kernel.steps();
    out.grants = grants_;
    out.overlaps = overlapping_.size();
    out.time = kernel.now();
    out.violation = violation_;
    out.trace = kernel.trace_text;
    for (std::size_t i = 0; i < faults_.size(); ++i)
        if (options.without.count(i) == 0)
            out.faults.push_back(std::to_string(i) + " " + to_string(faults_[i]));
    return out;
}

}  // namespace holdfast::sim
