// What one run is about, chosen by its seed: its clients, locks and features, and what goes wrong.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "world.hpp"

namespace holdfast::sim {
namespace {

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
    {"promote", "another server becomes the primary"},
    {"move", "a slot moves"},
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
            n.changes_at = r.between(second, trouble_lasts / 2);
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
        const auto feature = static_cast<Feature>(i);
        features_.at(i) =
            r.chance(250) && !options.no.contains(feature) && deployment_->plays(feature);
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
        n.changes_at = r.between(second, trouble_lasts / 2);
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
        u->process.far = true;
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
        f.from = r.between(0, trouble_lasts);
        f.lasts = r.chance(600) ? r.between(ms, 2 * ttl.count() * ms) : r.between(ms, 200 * ms);
        f.client = r.below(users.size());
        f.server = r.below(5);
        f.how = static_cast<unsigned>(r.below(1000));
        faults_.push_back(f);
    }
    std::sort(faults_.begin(), faults_.end(),
              [](const Fault& a, const Fault& b) { return a.from < b.from; });
}

}  // namespace holdfast::sim
