// What becomes of sessions, their nodes and their watches when clients fall silent or move and
// servers stop, stand still or are cut off: the same scripts on three simulated servers and on
// three real ones. What clients see is compared with each other and with what the script expects;
// moments are not, but for what may not happen before its time.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "fidelity.hpp"
#include "zookeeper_bed.hpp"
#include "zookeeper_tree.hpp"
#include "zookeeper_wire.hpp"

namespace holdfast::sim {
namespace {

/// "WHO WHAT ARGUMENTS => WHAT IS SEEN". Clients are A, B, C. Servers are L, which leads when the
/// script begins, F and G; "any": one after the other until one serves. $ is the script's own node.
///
///   A open F 1200    asks for its session at F, or for a new one: "new", "the same", "none",
///                    "hung up"
///   A as B           has the session of B; "A errs": and a wrong password; "A foresees": it has
///                    seen transactions of the future
///   A create, ephemeral, delete, set, get, exists, list, sync, close
///                    the error and what was read, or "hung up"; with "watch" behind a path
///   A rewatch P      sets a watch that it had before it reconnected
///   A sees E         waits for this event; "A sees nothing 500": none comes for so long
///   A silent, cut    sends no more pings; ends its connection
///   A ends           waits until it is hung up on
///   B gone P 1200    waits until P is gone: "gone", "too early" when that was sooner after the
///                    last silence, cut, kill or isolation
///   B kept P 1200    P stays for so long: "kept"
///   kill F, start F; pause F 700, isolate F 700: for so long; pass 700
struct Script {
    const char* name;
    bool slow;
    std::vector<const char*> lines;
};

const std::vector<Script>& scripts() {
    static const std::vector<Script> all{
        {"a client falls silent at a follower",
         false,
         {"B open L 8000 => new", "B create $ => 0", "C open G 8000 => new", "A open F 1200 => new",
          "A ephemeral $/e => 0", "A silent", "B gone $/e 1200 => gone", "A ends => hung up",
          "C sync $ => 0 $", "C get $/e => -101", "A open F 1200 => none"}},
        {"a client falls silent at the leader",
         false,
         {"B open F 8000 => new", "B create $ => 0", "A open L 1200 => new", "A ephemeral $/e => 0",
          "A silent", "B sync $ => 0 $", "B gone $/e 1200 => gone", "A ends => hung up",
          "A open G 1200 => none"}},
        {"a follower passes on that a client lives",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 1200 => new", "A ephemeral $/e => 0",
          "B kept $/e 3600 => kept", "A delete $/e => 0"}},
        {"a client moves in time",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 2000 => new", "A ephemeral $/e => 0",
          "A cut", "A open G 2000 => the same", "B kept $/e 3000 => kept", "A delete $/e => 0"}},
        {"a client moves too late",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 1200 => new", "A ephemeral $/e => 0",
          "A cut", "B gone $/e 1200 => gone", "A open G 1200 => none"}},
        {"what a client sends to the server that it has left",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A ephemeral $/e => 0",
          "C as A", "C open G 4000 => the same", "A get $ => 0 ''", "A set $ x => hung up",
          "C set $ y => 0", "B sync $ => 0 $", "B get $ => 0 'y'", "B get $/e => 0 ''"}},
        {"a client comes back over the same server",
         false,
         {"A open F 4000 => new", "A create $ => 0", "C as A", "C open F 4000 => the same",
          "A ends => hung up", "C set $ y => 0"}},
        {"a wrong password",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A ephemeral $/e => 0",
          "C as A", "C errs", "C open G 4000 => none", "A set $ x => 0", "B get $/e => 0 ''"}},
        {"a client that was shown more than the server has",
         false,
         {"A open F 4000 => new", "A create $ => 0", "A foresees", "A cut",
          "A open G 4000 => hung up", "A open L 4000 => hung up"}},
        {"a session is closed",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A ephemeral $/e => 0",
          "A ephemeral $/f => 0", "C as A", "B list $ watch => 0 e f", "A close => 0",
          "A ends => hung up", "B sees children $ => children $", "B list $ => 0",
          "C open G 4000 => none"}},
        {"nothing is created below an ephemeral node",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A ephemeral $/e => 0",
          "B create $/e/x => -108", "B ephemeral $/e => -110", "B delete $ => -111",
          "A delete $/e => 0", "B delete $ => 0"}},
        {"watches at other servers",
         false,
         {"B open L 8000 => new", "B create $ => 0", "B create $/x => 0", "A open F 4000 => new",
          "A sync $ => 0 $", "A get $/x watch => 0 ''", "C open G 4000 => new", "C sync $ => 0 $",
          "C list $ watch => 0 x", "B set $/x 1 => 0", "A sees changed $/x => changed $/x",
          "B delete $/x => 0", "C sees children $ => children $", "A sees nothing 500 => nothing"}},
        {"a node that is not there is watched",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A sync $ => 0 $",
          "A exists $/x watch => -101", "B create $/x => 0", "A sees created $/x => created $/x",
          "B set $/x 1 => 0", "B delete $/x => 0", "A sees nothing 500 => nothing"}},
        {"a session's end fires watches",
         false,
         {"B open L 8000 => new", "B create $ => 0", "C open G 8000 => new", "A open F 1200 => new",
          "A ephemeral $/e => 0", "C sync $ => 0 $", "C get $/e watch => 0 ''",
          "B list $ watch => 0 e", "A silent", "C sees deleted $/e => deleted $/e",
          "B sees children $ => children $"}},
        {"what has changed before a watch is set again",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A sync $ => 0 $",
          "A get $ watch => 0 ''", "A cut", "B set $ 1 => 0", "A open G 4000 => the same",
          "A rewatch $ => 0", "A sees changed $ => changed $"}},
        {"a watch that is set again in time",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A sync $ => 0 $",
          "A get $ watch => 0 ''", "A cut", "A open G 4000 => the same", "A rewatch $ => 0",
          "A sees nothing 300 => nothing", "B set $ 1 => 0", "A sees changed $ => changed $"}},
        {"a watch that is not set again",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 4000 => new", "A sync $ => 0 $",
          "A get $ watch => 0 ''", "A cut", "A open G 4000 => the same", "B set $ 1 => 0",
          "A sees nothing 500 => nothing"}},
        {"a follower that stood still shows all after a sync",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 8000 => new", "A sync $ => 0 $",
          "pause F 700", "B set $ 1 => 0", "A sync $ => 0 $", "A get $ => 0 '1'"}},
        {"a follower is cut off for a moment",
         false,
         {"B open L 8000 => new", "B create $ => 0", "A open F 8000 => new", "A ephemeral $/e => 0",
          "isolate F 500", "A get $/e => 0 ''", "A set $/e 1 => 0", "B sync $ => 0 $",
          "B get $/e => 0 '1'"}},
        {"the leader stops",
         false,
         {"B open G 8000 => new", "B create $ => 0", "A open F 8000 => new", "A ephemeral $/e => 0",
          "kill L", "A ends => hung up", "A open any 8000 => the same",
          "B open any 8000 => the same", "B kept $/e 500 => kept", "A delete $/e => 0"}},
        {"a follower stops and comes back",
         true,
         {"B open L 8000 => new", "B create $ => 0", "A open F 8000 => new", "A ephemeral $/e => 0",
          "kill F", "A ends => hung up", "B set $ 1 => 0", "start F", "A open F- 8000 => the same",
          "A sync $ => 0 $", "A get $ => 0 '1'", "B get $/e => 0 ''"}},
        {"a new leader gives a silent client its whole time",
         true,
         {"B open G 8000 => new", "B create $ => 0", "A open F 2000 => new", "A ephemeral $/e => 0",
          "A silent", "pass 700", "kill L", "B open any 8000 => the same",
          "B gone $/e 2000 => gone", "A open any 2000 => none"}},
        {"all servers stop and come back",
         true,
         {"B open L 8000 => new", "B create $ => 0", "A open F 8000 => new", "A ephemeral $/e => 0",
          "kill L", "kill F", "kill G", "start L", "start F", "start G",
          "A open any 8000 => the same", "B open any 8000 => the same", "B get $/e => 0 ''"}},
        {"all servers stop and come back, a client does not",
         true,
         {"B open L 8000 => new", "B create $ => 0", "A open F 2000 => new", "A ephemeral $/e => 0",
          "A silent", "kill L", "kill F", "kill G", "start L", "start F", "start G",
          "B open any 8000 => the same", "B gone $/e 2000 => gone"}},
        {"the leader is cut off, and its client stays",
         true,
         {"B open F 8000 => new", "B create $ => 0", "A open L 2000 => new", "A ephemeral $/e => 0",
          "isolate L 9000", "A get $/e => 0 ''", "A set $/e 1 => hung up",
          "A open L 2000 => hung up", "B open any 8000 => the same", "B gone $/e 2000 => gone",
          "A open any 2000 => none"}},
        {"the leader is cut off, and its client goes to another server",
         true,
         {"B open F 8000 => new", "B create $ => 0", "A open L 8000 => new", "A ephemeral $/e => 0",
          "isolate L 6000", "A ends => hung up", "A open any 8000 => the same", "A get $/e => 0 ''",
          "A set $/e 1 => 0"}},
        {"a follower is cut off, and its client stays",
         true,
         {"B open L 8000 => new", "B create $ => 0", "A open F 2000 => new", "A ephemeral $/e => 0",
          "isolate F 7000", "A get $/e => 0 ''", "A set $/e 1 => hung up",
          "B gone $/e 2000 => gone", "A open any 2000 => none"}},
        {"the leader stands still",
         true,
         {"B open F 8000 => new", "B create $ => 0", "A open G 8000 => new", "A ephemeral $/e => 0",
          "pause L 6000", "A ends => hung up", "A open any 8000 => the same",
          "B open any 8000 => the same", "B get $/e => 0 ''"}},
    };
    return all;
}

class Player {
public:
    Player(ZkBed& bed, std::string node) : bed_(bed), node_(std::move(node)) {
        const auto leader = bed_.leader();
        if (!leader) throw std::runtime_error("nobody leads");
        servers_ = {{"L", *leader}, {"F", (*leader + 1) % 3}, {"G", (*leader + 2) % 3}};
        last_look_ = bed_.now();
    }
    ~Player() {
        for (const std::size_t i : stopped_)
            bed_.start(i);
        clients_.clear();
    }

    /// What is seen.
    std::string play(const std::string& line) {
        std::istringstream in(line);
        std::string who;
        in >> who;
        std::string out;
        if (who == "kill" || who == "start" || who == "pause" || who == "isolate") {
            std::string server;
            int lasts = 0;
            in >> server >> lasts;
            harm(who, servers_.at(server), lasts * ms);
        } else if (who == "pass") {
            int lasts = 0;
            in >> lasts;
            const Nanos until = bed_.now() + lasts * ms;
            go_until(until, [] { return false; });
        } else {
            out = act(client(who), in);
        }
        for (auto at = out.find(node_); at != out.npos; at = out.find(node_))
            out.replace(at, node_.size(), "$");
        return out;
    }
    /// How long it did not come to look.
    Nanos longest_gap() const noexcept { return gap_; }

private:
    struct Client {
        explicit Client(ZkBed& bed) : zk(bed) {}
        ZkClient zk;
        int timeout_ms = 0;
        std::int64_t before = 0;  ///< the session of its last connection
        bool speaks = true;
        std::vector<std::string> events;
        std::map<std::int32_t, ZkWord> answers;
        bool greeted = false;
    };
    static constexpr Nanos cap = 20 * second;

    Client& client(const std::string& name) {
        auto& c = clients_[name];
        if (!c) c = std::make_unique<Client>(bed_);
        return *c;
    }

    void harm(const std::string& what, std::size_t server, Nanos lasts) {
        mark_ = bed_.now();
        harmed_.insert(server);
        if (what == "kill") {
            bed_.stop(server);
            stopped_.push_back(server);
        } else if (what == "start") {
            bed_.start(server);
            std::erase(stopped_, server);
        } else if (what == "pause") {
            bed_.pause(server, lasts);
        } else {
            bed_.isolate(server, lasts);
        }
        last_look_ = bed_.now();
    }

    /// Reads for all, and keeps their sessions alive.
    void look() {
        const Nanos now = bed_.now();
        gap_ = std::max(gap_, now - last_look_);
        last_look_ = now;
        for (auto& [name, c] : clients_) {
            for (ZkWord& w : c->zk.read()) {
                if (w.kind == ZkWord::Kind::greeting)
                    c->greeted = true;
                else if (w.kind == ZkWord::Kind::answer)
                    c->answers[w.xid] = std::move(w);
                else
                    c->events.push_back(named(w.event) + " " + w.path);
            }
            const Nanos quiet = c->zk.timeout_ms * ms / 4;
            if (c->greeted && c->speaks && !c->zk.ended() && now > c->zk.sent + quiet)
                c->zk.ask(wire::ping, {});
        }
    }
    template <class Condition>
    bool go_until(Nanos until, Condition condition) {
        for (;;) {
            look();
            if (condition()) return true;
            if (bed_.now() >= until) return false;
            bed_.pass(std::min(until, bed_.now() + 20 * ms));
        }
    }
    static std::string named(std::int32_t event) {
        return event == wire::created   ? "created"
               : event == wire::deleted ? "deleted"
               : event == wire::changed ? "changed"
                                        : "children";
    }
    std::string path(std::istream& in) const {
        std::string word;
        in >> word;
        const auto at = word.find('$');
        return at == word.npos ? word : word.replace(at, 1, node_);
    }

    std::string act(Client& c, std::istream& in) {
        std::string what, word;
        in >> what;
        if (what == "open") {
            in >> word >> c.timeout_ms;
            return open(c, word);
        }
        if (what == "as") {
            in >> word;
            const ZkClient& other = client(word).zk;
            c.zk.session = c.before = other.session;
            c.zk.password = other.password;
        } else if (what == "errs") {
            c.zk.password[0] = static_cast<char>(c.zk.password[0] + 1);
        } else if (what == "foresees") {
            c.zk.seen = std::int64_t{1} << 60;
        } else if (what == "silent") {
            c.speaks = false;
            mark_ = c.zk.sent;
        } else if (what == "cut") {
            c.zk.hang_up();
            mark_ = c.zk.sent;
        } else if (what == "ends") {
            return go_until(bed_.now() + cap, [&] { return c.zk.ended(); }) ? "hung up" : "goes on";
        } else if (what == "sees") {
            return sees(c, in);
        } else if (what == "gone" || what == "kept") {
            const std::string where = path(in);
            int lasts = 0;
            in >> lasts;
            return what == "gone" ? gone(c, where, lasts * ms) : kept(c, where, lasts * ms);
        } else {
            return ask(c, what, in);
        }
        return {};
    }

    bool greets(Client& c, std::size_t server, Nanos patience) {
        c.greeted = false;
        c.speaks = true;
        c.answers.clear();
        c.zk.dial(server, c.timeout_ms);
        go_until(bed_.now() + patience, [&] { return c.greeted || c.zk.ended(); });
        return c.greeted;
    }
    /// A server that lags by a moment hangs up on a session whose end, or whose last write, it has
    /// yet to hear of. Scripts say what it does when it knows.
    void catch_up(std::size_t server) {
        Client& scout = client("scout of " + std::to_string(server));
        scout.timeout_ms = 8000;
        if (scout.zk.session == 0 || scout.zk.ended()) greets(scout, server, cap);
        ask(scout, wire::sync, wire::Writer().text("/").bytes);
    }
    /// "F-": again and again.
    std::string open(Client& c, const std::string& where) {
        const Nanos until = bed_.now() + 3 * cap;  // Java begins slowly
        const bool once = servers_.contains(where);
        std::vector<std::size_t> order{0, 1, 2};
        if (where.back() == '-') order = {servers_.at(where.substr(0, 1))};
        if (once) order = {servers_.at(where)};
        if (once && c.before != 0 && !harmed_.contains(order.front())) catch_up(order.front());
        do {
            for (const std::size_t server : order)
                if (greets(c, server, once ? cap : second)) {
                    const std::int64_t before = std::exchange(c.before, c.zk.session);
                    if (c.zk.session == 0) return "none";
                    return before == 0 ? "new" : before == c.zk.session ? "the same" : "another";
                }
            if (!once) go_until(bed_.now() + 50 * ms, [] { return false; });
        } while (!once && bed_.now() < until);
        return "hung up";
    }

    std::string sees(Client& c, std::istream& in) {
        std::string what;
        in >> what;
        if (what == "nothing") {
            int lasts = 0;
            in >> lasts;
            if (!go_until(bed_.now() + lasts * ms, [&] { return !c.events.empty(); }))
                return "nothing";
        } else {
            go_until(bed_.now() + cap, [&] { return !c.events.empty(); });
        }
        if (c.events.empty()) return "nothing";
        const std::string first = c.events.front();
        c.events.erase(c.events.begin());
        return first;
    }

    std::string ask(Client& c, const std::string& what, std::istream& in) {
        std::string where, more;
        if (what != "close") where = path(in);
        in >> more;
        std::int32_t type = 0;
        std::string body;
        if (what == "create" || what == "ephemeral") {
            type = wire::create;
            body = zk_create(where, "", what == "create" ? 0 : 1);
        } else if (what == "delete") {
            type = wire::remove;
            body = zk_remove(where);
        } else if (what == "set") {
            type = wire::set_data;
            body = zk_set(where, more);
        } else if (what == "get" || what == "list" || what == "exists") {
            type = what == "get"    ? wire::get_data
                   : what == "list" ? wire::get_children
                                    : wire::exists;
            body = zk_read(where, more == "watch");
        } else if (what == "sync") {
            type = wire::sync;
            body = wire::Writer().text(where).bytes;
        } else if (what == "rewatch") {
            type = wire::set_watches_again;
            body = wire::Writer().int64(c.zk.seen).texts({where}).texts({}).texts({}).bytes;
        } else if (what == "close") {
            type = wire::close_session;
        } else {
            throw std::runtime_error("a script says: " + what);
        }
        const auto answer = ask(c, type, body);
        return answer ? described(type, *answer) : "hung up";
    }
    std::optional<ZkWord> ask(Client& c, std::int32_t type, const std::string& body) {
        const std::int32_t xid = c.zk.ask(type, body);
        const bool came =
            go_until(bed_.now() + cap, [&] { return c.answers.contains(xid) || c.zk.ended(); });
        if (!came || !c.answers.contains(xid)) return std::nullopt;
        auto answer = std::move(c.answers.at(xid));
        c.answers.erase(xid);
        return answer;
    }
    static std::string described(std::int32_t type, const ZkWord& answer) {
        std::string out = std::to_string(answer.error);
        if (answer.error != 0) return out;
        wire::Reader r(answer.body);
        if (type == wire::get_data) out += " '" + r.text() + "'";
        if (type == wire::sync) out += " " + r.text();
        if (type != wire::get_children) return out;
        auto children = r.texts();
        std::sort(children.begin(), children.end());
        for (const std::string& child : children)
            out += " " + child;
        return out;
    }

    /// Asks over another connection, if need be, and then for all that the leader has: a server
    /// that is met anew may lag.
    bool is_there(Client& c, const std::string& where) {
        for (int i = 0; i < 20; ++i) {
            const auto answer = ask(c, wire::get_data, zk_read(where, false));
            if (answer && answer->error == 0) return true;
            if (answer && answer->error == static_cast<std::int32_t>(ZkError::no_node))
                return false;
            do
                open(c, "any");
            while (!ask(c, wire::sync, wire::Writer().text("/").bytes) && ++i < 20);
        }
        throw std::runtime_error("nobody answers");
    }
    std::string gone(Client& c, const std::string& where, Nanos not_before) {
        const Nanos until = bed_.now() + cap;
        while (is_there(c, where)) {
            if (bed_.now() >= until) return "there";
            go_until(bed_.now() + 20 * ms, [] { return false; });
        }
        // A simulated server's clock may be faster, by up to 0.3 %.
        const Nanos early = mark_ + not_before - not_before / 300 - bed_.now();
        return early <= 0 ? "gone" : "too early by " + std::to_string(early / us) + " us";
    }
    std::string kept(Client& c, const std::string& where, Nanos lasts) {
        const Nanos until = bed_.now() + lasts;
        while (bed_.now() < until) {
            if (!is_there(c, where)) return "gone";
            go_until(bed_.now() + 20 * ms, [] { return false; });
        }
        return "kept";
    }

    ZkBed& bed_;
    const std::string node_;
    std::map<std::string, std::size_t> servers_;
    std::map<std::string, std::unique_ptr<Client>> clients_;
    std::vector<std::size_t> stopped_;
    std::set<std::size_t> harmed_;
    Nanos mark_ = 0, last_look_ = 0, gap_ = 0;
};

/// What was seen at each step.
std::vector<std::string> play(Player& player, const Script& script) {
    std::vector<std::string> out;
    for (const std::string line : script.lines)
        out.push_back(player.play(line.substr(0, line.find(" => "))));
    return out;
}

}  // namespace

int compare_zookeeper_scripts(std::uint64_t seed, bool all) {
    const ZkBedOptions options{.servers = 3, .tick_ms = 200, .sync_limit = 10};
    const auto real_bed = make_real_bed(options);
    std::size_t differ = 0, played = 0, number = 0;
    for (const Script& script : scripts()) {
        if (script.slow && !all) continue;
        ++played;
        std::vector<std::string> expected, simulated, real;
        for (const std::string line : script.lines) {
            const auto at = line.find(" => ");
            expected.push_back(at == line.npos ? "" : line.substr(at + 4));
        }
        {
            const auto bed = make_simulated_bed(options, seed + number);
            Player player(*bed, "/s");
            simulated = play(player, script);
        }
        const Nanos begin = real_bed->now();
        // A machine that stood still says nothing about its servers.
        constexpr Nanos stall = 300 * ms;
        Nanos gap = 0;
        for (int tries = 0; tries < 3; ++tries) {
            Player player(*real_bed, "/s" + std::to_string(++number));
            real = play(player, script);
            gap = player.longest_gap();
            if (real == expected || gap < stall) break;
            std::printf("%s: this machine stood still for %lld ms; once more\n", script.name,
                        static_cast<long long>(gap / ms));
        }
        const bool same = simulated == expected && real == expected;
        std::printf("%s: %s, %.1f s\n", script.name, same ? "as expected" : "NOT as expected",
                    static_cast<double>(real_bed->now() - begin) / 1e9);
        for (std::size_t i = 0; i < expected.size(); ++i)
            if (simulated[i] != expected[i] || real[i] != expected[i])
                std::printf("  %s\n    simulated: %s\n    real:      %s\n", script.lines[i],
                            simulated[i].c_str(), real[i].c_str());
        differ += same ? 0 : 1;
    }
    std::printf("zookeeper: seed %llu, %zu scripts, %zu differ\n",
                static_cast<unsigned long long>(seed), played, differ);
    return differ == 0 ? 0 : 1;
}

}  // namespace holdfast::sim
