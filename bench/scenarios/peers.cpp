// Other libraries' locks beside Holdfast's and the bare client, on the same servers in the same
// run.
#include <map>

#include "floors/advisory_lock.hpp"
#include "floors/contenders.hpp"
#include "floors/etcd_floor.hpp"
#include "floors/mysql_floor.hpp"
#include "floors/postgresql_floor.hpp"
#include "floors/user_lock.hpp"
#include "floors/zookeeper_floor.hpp"
#include "measure/alone.hpp"
#include "peers/programs.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = peers_scenario;

/// Everything that is measured, and what its rows say beside the figures.
class Field {
public:
    explicit Field(Bench& bench) : bench_(bench), seconds_(bench.options.pick(0.05, 0.1, 0.3)) {}

    /// Cycles of ours, each timed by itself as the peers do it; `make` does what comes before.
    void add(const std::string& backend, const std::string& variant, const std::string& note,
             const std::function<std::function<void()>()>& make) {
        add_contender(bench_, id, contenders_, backend, variant, [&] { return timed(make()); });
        notes_[{backend, variant}] = note;
    }
    void add_holdfast(const Deployment&);
    void add(const std::vector<Peer>&);
    void measure();

private:
    Contender timed(std::function<void()> cycle) const;
    Contender driven(std::shared_ptr<PeerProcess>) const;
    void greet(const Peer&, const std::shared_ptr<PeerProcess>&);
    void fail(const Peer&, const std::string& variant, const std::string& why);

    Bench& bench_;
    double seconds_;
    std::vector<Contender> contenders_;
    std::map<std::pair<std::string, std::string>, std::string> notes_;
};

Contender Field::timed(std::function<void()> cycle) const {
    cycle();
    auto latency = std::make_shared<Latency>();
    return {{},
            {},
            [cycle = std::move(cycle), latency, seconds = seconds_] {
                std::size_t done = 0;
                const auto start = Clock::now();
                for (auto before = start; seconds_since(start) < seconds; ++done) {
                    cycle();
                    const auto after = Clock::now();
                    latency->add(after - before);
                    before = after;
                }
                return done;
            },
            latency};
}

Contender Field::driven(std::shared_ptr<PeerProcess> process) const {
    auto latency = std::make_shared<Latency>();
    return {{},
            {},
            [process = std::move(process), latency, seconds = seconds_] {
                const auto times = process->block(seconds);
                for (const double us : times)
                    latency->add_us(us);
                return times.size();
            },
            latency};
}

void Field::add_holdfast(const Deployment& d) {
    add(d.backend, d.variant, "Holdfast, one blocking caller", [&]() -> std::function<void()> {
        auto work = alone(d, "bench/beside-peers").work;
        return [work = std::move(work)] { work(); };
    });
}

void Field::fail(const Peer& peer, const std::string& variant, const std::string& why) {
    add_contender(bench_, id, contenders_, peer.backend, variant,
                  [&]() -> Contender { throw PeerError(why); });
}

/// All are started before the first is waited for.
void Field::add(const std::vector<Peer>& all) {
    std::vector<std::shared_ptr<PeerProcess>> processes;
    for (const Peer& peer : all) {
        processes.emplace_back();
        try {
            processes.back() = std::make_shared<PeerProcess>(peer.start);
        } catch (const PeerError& error) {
            fail(peer, peer_variant(peer.name, {}), error.what());
        }
    }
    for (std::size_t i = 0; i < all.size() && !bench_.stopped(); ++i)
        if (processes[i]) greet(all[i], processes[i]);
}

/// Asks who it is, warms it up, and has it prove that its lock is one that the server knows.
void Field::greet(const Peer& peer, const std::shared_ptr<PeerProcess>& process) {
    std::string variant = peer_variant(peer.name, {});
    try {
        const PeerSaid said = process->hello();
        if (said.kind == PeerSaid::Kind::missing)
            return bench_.add(missing_peer(peer.backend, peer.name, said.words));
        variant = peer_variant(peer.name, said.version);
        process->block(peer.warm_up);
        process->hold();
        if (!peer.locked()) throw PeerError("it says that it holds, and the server shows no lock");
        process->free();
        if (peer.locked()) throw PeerError("it says that it released, and the server shows a lock");
        contenders_.push_back(driven(process));
        contenders_.back().backend = peer.backend;
        contenders_.back().variant = variant;
        notes_[{peer.backend, variant}] = said.settings;
    } catch (const std::exception& error) {
        fail(peer, variant, error.what());
    }
}

constexpr std::string_view backends[] = {"redis", "redlock",    "zookeeper",
                                         "etcd",  "postgresql", "mysql"};
constexpr const char* redis_floor = "floor: plain pair";
constexpr const char* redlock_floor = "floor: five at once";
constexpr const char* zookeeper_floor = "floor: three steps";
constexpr const char* reading_floor = "floor: two round trips";
constexpr const char* writing_floor = "floor: INSERT, DELETE not synced";

bool is_floor(std::string_view variant) {
    return variant.starts_with("floor: ");
}
bool is_peer(std::string_view variant) {
    return variant.starts_with("peer: ");
}

/// Of who writes the floor writes, too.
const char* floor_of(std::string_view backend, std::string_view variant) {
    if (backend == "redis") return redis_floor;
    if (backend == "redlock") return redlock_floor;
    if (backend == "zookeeper") return zookeeper_floor;
    if (backend == "etcd") return EtcdFloor::variant;
    if (is_peer(variant)) return reading_floor;
    return backend == "mysql" ? MysqlFloor::variant : writing_floor;
}

/// In the order of a table: server by server, the floor, Holdfast, the others.
auto place(const Contender& c) {
    const auto server = std::find(std::begin(backends), std::end(backends), c.backend);
    return std::pair(server - std::begin(backends), is_floor(c.variant)  ? 0
                                                    : is_peer(c.variant) ? 2
                                                                         : 1);
}

void Field::measure() {
    std::stable_sort(contenders_.begin(), contenders_.end(),
                     [](const Contender& a, const Contender& b) { return place(a) < place(b); });
    const RoundPlan plan{id, bench_.options.pick(3, 5, 11), seconds_, 1};
    const auto all = measure_rounds(bench_, plan, contenders_);
    for (const Measured& m : all) {
        if (m.failed) continue;
        PeerFigures figures{m.backend, m.variant, notes_[{m.backend, m.variant}],
                            m.p50_us,  m.all,     {}};
        const Measured* floor = find(all, m.backend, floor_of(m.backend, m.variant));
        if (floor != nullptr && !is_floor(m.variant))
            figures.over_floor = ratios(m, *floor, Of::p50);
        for (Row& row : peer_rows(figures))
            bench_.add(std::move(row));
    }
}

void add_postgresql(Field& field, const lab::PostgresServer& server) {
    const auto connect = [&] { return std::make_shared<AdvisoryLock>(server.url()); };
    field.add("postgresql", reading_floor, "bare libpq, SELECT 1 twice, prepared",
              [&]() -> std::function<void()> {
                  return [floor = connect()] { floor->two_round_trips(); };
              });
    field.add("postgresql", writing_floor, "bare libpq, prepared; the INSERT is synced",
              [&]() -> std::function<void()> {
                  auto floor = std::make_shared<PostgresqlFloor>(server.url(), false);
                  return [floor] { floor->cycle(); };
              });
    const auto lock = connect();
    field.add("postgresql", peer_variant("advisory lock", lock->server_version()),
              "bare libpq " + AdvisoryLock::library_version() +
                  ", pg_advisory_lock and pg_advisory_unlock, prepared; nothing is written",
              [&]() -> std::function<void()> {
                  if (!lock->shows_lock(true) || lock->shows_lock(false))
                      throw PeerError("the server does not show the advisory lock as it is");
                  return [lock] { lock->cycle(); };
              });
}

void add_mysql(Field& field, const lab::MariadbServer& server) {
    const auto at = MariadbAddress::of(server);
    const auto connect = [&] { return std::make_shared<UserLock>(at); };
    field.add("mysql", reading_floor, "bare libmariadb, SELECT 1 twice",
              [&]() -> std::function<void()> {
                  return [floor = connect()] { floor->two_round_trips(); };
              });
    field.add("mysql", MysqlFloor::variant, "bare libmariadb, prepared; both are synced",
              [&]() -> std::function<void()> {
                  auto floor = std::make_shared<MysqlFloor>(at);
                  return [floor] { floor->cycle(); };
              });
    const auto lock = connect();
    field.add("mysql", peer_variant("GET_LOCK", lock->server_version()),
              "bare libmariadb " + UserLock::library_version() +
                  ", GET_LOCK and RELEASE_LOCK; nothing is written",
              [&]() -> std::function<void()> {
                  if (!lock->shows_lock(true) || lock->shows_lock(false))
                      throw PeerError("the server does not show the lock of GET_LOCK as it is");
                  return [lock] { lock->cycle(); };
              });
}

void run(Bench& bench) {
    Field field(bench);
    Site& site = bench.site;
    for (const auto& [backend, variant] : {std::pair{"redis", "default"},
                                           {"redis", "plain"},
                                           {"redlock", "no token"},
                                           {"zookeeper", "default"},
                                           {"etcd", "default"},
                                           {"postgresql", "default"},
                                           {"mysql", "default"}})
        if (const Deployment* d = site.find(backend, variant)) field.add_holdfast(*d);
    const auto plain = [](const std::vector<std::uint16_t>& ports) -> std::function<void()> {
        return [work = plain_pairs(ports).work] { work(); };
    };
    if (const auto* redis = site.redis())
        field.add("redis", redis_floor, "bare hiredis, SET NX PX, then compare-and-delete",
                  [&] { return plain({redis->port()}); });
    if (const auto nodes = site.redlock_ports(); !nodes.empty())
        field.add("redlock", redlock_floor, "bare hiredis, the same two commands on each node",
                  [&] { return plain(nodes); });
    if (const auto* zookeeper = site.zookeeper())
        field.add("zookeeper", zookeeper_floor, "bare C client: create, list, delete",
                  [&]() -> std::function<void()> {
                      auto floor = std::make_shared<ZooKeeperFloor>(zookeeper->connect_string());
                      return [floor] { floor->cycle(); };
                  });
    if (const auto* etcd = site.etcd())
        field.add("etcd", EtcdFloor::variant, "bare HTTP, the requests of Holdfast",
                  [&]() -> std::function<void()> {
                      auto floor = std::make_shared<EtcdFloor>(etcd->port());
                      return [floor] { floor->cycle(); };
                  });
    if (const auto* postgresql = site.postgresql()) add_postgresql(field, *postgresql);
    if (const auto* mysql = site.mysql()) add_mysql(field, *mysql);
    field.add(peers(bench));
    field.measure();
}

}  // namespace

Scenario peers_beside() {
    return {
        id, "other libraries' locks, uncontended, over the bare client of the same server",
        "Each library's own program does acquire and release of one lock that nobody else wants "
        "and times every cycle by itself; its blocks, those of Holdfast and those of a bare "
        "client follow each other in random order, after a warm-up. Ratios are taken within a "
        "round. Before that the server has to show each peer's lock while it says that it "
        "holds, and none after. Left out of --quick.",
        false, [](const Options& options, const Site&) {
            std::vector<Step> steps;
            if (options.effort != Effort::quick || !options.scenarios.empty())
                steps.push_back({"other libraries, all peers and floors interleaved", run});
            return steps;
        }};
}

}  // namespace holdfast::bench
