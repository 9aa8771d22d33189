#include "world.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "history.hpp"
#include "listener.hpp"
#include "succession.hpp"
#include "worker.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos troubled = 15 * second;  ///< so long things go wrong
constexpr Nanos patience = 90 * second;  ///< then everything ends, at the latest so much later
constexpr std::uint64_t most_steps = 300'000;  ///< of all threads, in a second

/// For `--only`, and in a trace; in the order of Fault::Kind.
struct Words {
    const char *name, *what;
};
constexpr std::array<Words, static_cast<std::size_t>(Fault::Kind::count_)> all_words{
    Words{"slow", "slow"},
    {"cut", "cut"},
    {"break", "connections break"},
    {"freeze", "machine stands still"},
    {"kill", "killed"},
    {"restart", "server restarts"},
    {"empty", "server restarts empty"},
    {"pause", "server stands still"},
    {"isolate", "server does not hear the others"},
    {"lose-writes", "server restarts without its last writes"},
    {"flush", "server is emptied"},
    {"clock-jump", "server's clock jumps"},
    {"clock-back", "server's clock jumps back"},
    {"starve", "a thread gets no processor"},
    {"set-clock", "a client's clock is set"},
};

/// In the order of Feature.
constexpr std::array<Words, static_cast<std::size_t>(Feature::count_)> all_features{
    Words{"sets", "sets of locks"}, {"owners", "owners"},
    {"elections", "an election"},   {"handles", "many handles"},
    {"modes", "several modes"},     {"limits", "limits that change"},
    {"far", "far clients"},         {"starved", "starved threads"},
    {"clocks", "wrong clocks"},
};

/// Which of these words it is.
template <std::size_t N>
std::size_t named(const std::array<Words, N>& all, std::string_view name, const char* what) {
    std::string known;
    for (std::size_t i = 0; i < N; ++i) {
        if (all.at(i).name == name) return i;
        known += std::string(" ") + all.at(i).name;
    }
    throw std::runtime_error("no " + std::string(what) + ": " + std::string(name) +
                             "; there are:" + known);
}

}  // namespace

Fault::Kind fault_named(std::string_view name) {
    return static_cast<Fault::Kind>(named(all_words, name, "kind of fault"));
}

Feature feature_named(std::string_view name) {
    return static_cast<Feature>(named(all_features, name, "feature"));
}

std::string to_string(const Fault& f) {
    return std::string(all_words.at(static_cast<std::size_t>(f.kind)).what) + ": client " +
           std::to_string(f.client) + ", server " + std::to_string(f.server) + ", way " +
           std::to_string(f.how % 3) + ", " + std::to_string(f.lasts / ms) + " ms from " +
           std::to_string(f.from / ms) + " ms on";
}

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

void World::plan() {
    Random& r = kernel.random();
    static constexpr std::array<Nanos, 5> ttls{300, 600, 1000, 2000, 5000};
    ttl = milliseconds(ttls.at(r.below(ttls.size())));
    request_timeout = std::min(milliseconds(2000), ttl / 3);
    calm = r.chance(100) && !options.unsafe && !options.rough;
    kernel.preemptions = r.chance(500) && !options.rough ? 0 : static_cast<unsigned>(r.below(30));
    // A calm run judges what is late, and has no machine that is.
    kernel.longest_latency = calm || r.chance(500) ? 2 * ms : 20 * ms;
    slack_ = 20 * ms + 10 * kernel.longest_latency;
    with_events_ = r.chance(300) || calm;
    with_loop_ = r.chance(700);
    workers_ = 1 + static_cast<unsigned>(r.below(3));
    const std::size_t name_count = 1 + r.below(2);
    for (std::size_t i = 0; i < name_count; ++i) {
        Name n{std::string(1, static_cast<char>('M' + i)), {}};
        n.options.kind = static_cast<Kind>(r.below(3));
        if (!deployment_->has(n.options.kind)) n.options.kind = Kind::mutex;
        if (n.options.kind == Kind::semaphore)
            n.options.limit = 1 + static_cast<std::uint32_t>(r.below(4));
        n.options.renew = !r.chance(200);
        if (n.options.kind == Kind::semaphore && deployment_->changes_limits() && r.chance(500)) {
            n.next_limit = 1 + static_cast<std::uint32_t>(r.below(4));
            n.changes_at = r.between(second, troubled / 2);
        }
        names.push_back(n);
    }
    choose_features();
    refine();
    url_ = deployment_->url(*this);
    unseen_.resize(names.size());
    highest_.resize(names.size());
    highest_exclusive_.resize(names.size());
    in_use_.resize(names.size());
    lapses_.resize(names.size());
    const std::size_t user_count = 2 + r.below(3);
    for (std::size_t i = 0; i < user_count; ++i) {
        users.push_back(std::make_unique<User>());
        User& u = *users.back();
        u.number = i;
        u.process.name = "client" + std::to_string(i);
        u.process.local = 1000 * second + r.between(0, 1000 * second);
        u.process.ppm = r.between(-3000, 3000);
        if (deployment_->right_clocks()) u.process.local = right + r.between(0, 100 * ms);
        if (deployment_->one_machine()) u.process.local = 1000 * second, u.process.ppm = 0;
        for (const auto& one : servers_)
            u.routes.push_back(std::make_unique<Route>(kernel, u.process, *one.server));
    }
    choose_machines();
    trace("plan", url_.substr(url_.find('?')) + (calm ? ", calm" : "") +
                      (operated_ ? ", with an operator" : ""));
    for (const Name& n : names)
        trace("plan",
              n.text + ": " + std::string(to_string(n.options.kind)) + " of " +
                  std::to_string(n.options.limit) + (n.options.renew ? "" : ", not renewed") +
                  ", delay " + std::to_string(n.options.lock_delay.count()) + " ms, closed for " +
                  std::to_string(n.options.min_hold.count()) + " ms" +
                  (n.options.max_hold == forever
                       ? ""
                       : ", for at most " + std::to_string(n.options.max_hold.count()) + " ms") +
                  (n.next_limit == 0 ? ""
                                     : ", of " + std::to_string(n.next_limit) + " from " +
                                           std::to_string(n.changes_at / ms) + " ms on"));
}

void World::choose_features() {
    Random r(options.seed ^ 0xFEA7U);  // so that what it decides changes nothing else
    std::string chosen;
    for (std::size_t i = 0; i < features_.size(); ++i) {
        features_.at(i) = r.chance(250) && !options.no.contains(static_cast<Feature>(i));
        if (features_.at(i))
            chosen += std::string(chosen.empty() ? "" : ", ") + all_features.at(i).what;
    }
    if (has(Feature::modes)) deployment_->mix(r);
    for (Name& n : names)
        if (!deployment_->has(n.options.kind)) {
            n.options.kind = Kind::mutex;
            n.options.limit = 1;
            n.next_limit = 0;
        }
    const auto add = [&](Kind kind) -> Name& {
        Name n{std::string(1, static_cast<char>('M' + names.size())), {}};
        n.options.kind = deployment_->has(kind) ? kind : Kind::mutex;
        if (n.options.kind == Kind::semaphore)
            n.options.limit = 1 + static_cast<std::uint32_t>(r.below(4));
        return names.emplace_back(n);
    };
    const std::size_t count = 2 + r.below(3);
    while (has(Feature::sets) && names.size() < count)
        add(static_cast<Kind>(r.below(3)));
    if (has(Feature::elections)) add(Kind::mutex).elects = true;
    if (has(Feature::limits)) change_limits(r);
    if (has(Feature::owners)) workers_ = std::max(workers_, 2U);
    if (!chosen.empty()) trace("plan", "with " + chosen);
}

void World::change_limits(Random& r) {
    for (Name& n : names) {
        if (n.options.kind != Kind::semaphore || n.next_limit > 0) continue;
        n.next_limit = 1 + static_cast<std::uint32_t>(r.below(4));
        n.changes_at = r.between(second, troubled / 2);
    }
}

/// How far they are from the servers, and how fast their clocks run.
void World::choose_machines() {
    Random r(options.seed ^ 0xFA12U);  // so that what it decides changes nothing else
    const Nanos longest = deployment_->farthest(request_timeout.count() * ms);
    for (const auto& u : users) {
        if (has(Feature::clocks) && !deployment_->one_machine())
            u->process.ppm = (r.chance(500) ? 1 : -1) * r.between(3000, 4900);
        if (!has(Feature::far) || calm || longest < 150 * ms || r.chance(500)) continue;
        const Nanos there_and_back = r.between(150 * ms, longest);
        far_ = std::max(far_, there_and_back);
        for (const auto& route : u->routes) {
            route->shortest = there_and_back * 2 / 5;
            route->longest = route->usual = there_and_back / 2;
        }
    }
}

void World::refine() {
    Random r(options.seed ^ 0xDE1AU);  // so that what it decides changes nothing else
    operated_ = r.chance(400) && deployment_->operates();
    for (Name& n : names) {
        LockOptions& o = n.options;
        if (r.chance(300)) o.min_hold = milliseconds(r.between(20, 900));
        if (r.chance(300)) o.lock_delay = milliseconds(r.between(20, 500));
        if (r.chance(150)) o.max_hold = milliseconds(r.between(ttl.count() / 2, 2 * ttl.count()));
        if (!deployment_->pauses()) o.min_hold = o.lock_delay = milliseconds(0);
        bounded_ = bounded_ || o.max_hold < forever;
        delay_ = std::max(delay_, o.lock_delay.count() * ms);
    }
}

bool World::breaks_now(std::size_t name) const {
    return history_->breaks_now(name, kernel.now());
}

void World::settle(const Capabilities& has) {
    notified_ = notified_ && has.has(Capability::notified);
    for (Name& n : names) {
        if (!has.has(Capability::min_hold)) n.options.min_hold = milliseconds(0);
        if (!has.has(Capability::lock_delay)) n.options.lock_delay = milliseconds(0);
    }
}

void World::make_faults() {
    Random r(options.seed ^ 0x5EEDU);
    auto kinds = deployment_->faults(options.unsafe);
    const auto add = [&](Feature f, Fault::Kind kind) {
        if (has(f) || options.only.contains(kind)) kinds.insert(kinds.end(), 3, kind);
    };
    add(Feature::starved, Fault::Kind::starve);
    if (!deployment_->right_clocks()) add(Feature::clocks, Fault::Kind::set_clock);
    if (!options.only.empty())
        std::erase_if(kinds, [&](Fault::Kind k) { return !options.only.contains(k); });
    if (kinds.empty()) throw std::runtime_error("it has none of these faults");
    if (calm) return;
    // Some runs are calm, some are hell.
    const std::size_t count =
        options.rough ? 10 + r.below(20) : 1 + r.below(r.chance(300) ? 20 : 6);
    for (std::size_t i = 0; i < count; ++i) {
        Fault f;
        f.kind = kinds.at(r.below(kinds.size()));
        f.from = r.between(0, troubled);
        f.lasts = r.chance(600) ? r.between(ms, 2 * ttl.count() * ms) : r.between(ms, 200 * ms);
        f.client = r.below(users.size());
        f.server = r.below(5);
        f.how = static_cast<unsigned>(r.below(1000));
        faults_.push_back(f);
    }
    std::sort(faults_.begin(), faults_.end(),
              [](const Fault& a, const Fault& b) { return a.from < b.from; });
}

void World::begin(const Fault& f) {
    trace("FAULT", to_string(f));
    troubled_until_ = std::max(troubled_until_, kernel.now() + f.lasts);
    User& u = *users[f.client];
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
                std::max(u.process.starved_until, std::min(kernel.now() + f.lasts, troubled));
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
    }
}

void World::end(const Fault& f) {
    User& u = *users[f.client];
    Route* route = u.routes.empty() ? nullptr : u.routes[f.server % u.routes.size()].get();
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
    auto made = Election::make(*u.client, n.text, n.options);
    if (!made) return fail("an election: " + made.error().message());
    u.candidates.back() = std::make_unique<Candidate>(std::move(*made));
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
        if (f.kind == Fault::Kind::slow || f.kind == Fault::Kind::cut)
            kernel.at(f.from + f.lasts, [this, &f] { end(f); });
    }
    for (const auto& u : users)
        u->main = kernel.start(u->process, "main", [this, &u] { live(*u); });
    go_until(troubled, [] { return false; });
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
    out.time = kernel.now();
    out.violation = violation_;
    out.trace = kernel.trace_text;
    for (std::size_t i = 0; i < faults_.size(); ++i)
        if (options.without.count(i) == 0)
            out.faults.push_back(std::to_string(i) + " " + to_string(faults_[i]));
    return out;
}

}  // namespace holdfast::sim
