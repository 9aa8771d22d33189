// The same random commands to the servers of a simulated Redis Cluster and of a real one, at each
// step of a slot's move, and to a primary that misses the others.
#include <chrono>
#include <cstdio>
#include <holdfast/lab/redis_cluster.hpp>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "fidelity.hpp"
#include "kernel.hpp"

namespace holdfast::sim {
namespace {

using Line = std::vector<std::string>;
constexpr std::size_t servers_of_each = 3;
const Line moved_keys{"{t}a", "{t}b", "{t}c", "{t}d", "{t}e", "{t}f", "{t}g", "t"};

template <class T>
const T& any_of_these(Random& r, const std::vector<T>& all) {
    return all[r.below(all.size())];
}

Line random_script(Random& r, const Line& keys) {
    static const Line bodies{
        "return 1",
        "return redis.call('GET', KEYS[1])",
        "redis.call('DEL', KEYS[1]) return redis.call('EXISTS', KEYS[1])",
        "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('EXISTS', unpack(KEYS))",
        "redis.call('DEL', KEYS[1]) local v = redis.pcall('SET', KEYS[1], ARGV[1]) return v",
        "redis.call('DEL', unpack(KEYS)) return redis.pcall('GET', KEYS[#KEYS])",
    };
    const std::uint64_t count = r.below(4);
    Line out{"EVAL", count == 0 ? bodies.front() : any_of_these(r, bodies), std::to_string(count)};
    for (std::uint64_t i = 0; i < count; ++i)
        out.push_back(any_of_these(r, keys));
    out.push_back("x");
    return out;
}

/// Most of them about the slot that moves, some about another one, a few about two.
Line random_command(Random& r) {
    static const Line anywhere{"{t}a", "u", "{u}v", "{}w"};
    const Line& keys = r.chance(900) ? moved_keys : anywhere;
    const std::string key = any_of_these(r, keys);
    switch (r.below(14)) {
        case 0:
            return {"CLUSTER", "KEYSLOT", key + std::to_string(r.below(1'000'000))};
        case 1:
            return {"CLUSTER", r.chance(500) ? "SLOTS" : "NODES"};
        case 2:
            return {"PING"};
        case 3:
            return {"DEL", key, any_of_these(r, keys)};
        case 4:
            return {"EXISTS", key, any_of_these(r, keys), any_of_these(r, keys)};
        case 5:
            return {"SET", key, "x"};
        case 6:
            return {"SET", key, "y", "NX"};
        case 7:
            return {"GET", key};
        default:
            return random_script(r, keys);
    }
}

/// Both clusters, which go through the same.
class ClusterPair {
public:
    explicit ClusterPair(std::uint64_t seed) : random_(seed), kernel_(1) {
        for (std::size_t i = 0; i < servers_of_each; ++i) {
            links_.push_back(real_.server(i).connect());
            ids_[real_.server(i).cli({"CLUSTER", "MYID"}).text] = i;
            simulated_.push_back(
                std::make_unique<ClusterServer>(kernel_, i, servers_of_each, servers_of_each));
        }
        slot_ = slot_of("t");
        from_ = real_.owner(slot_);
        to_ = (from_ + 1) % servers_of_each;
    }

    /// To the next server, or to the one that is left. False: the answers differ, and were printed.
    bool ask(const char* when) {
        const std::size_t at = alone_ ? to_ : random_.below(servers_of_each);
        const bool asking = random_.chance(300);
        return is_same(when, at, asking, random_command(random_));
    }
    /// A script that removes a key, and misses it.
    bool cut_short() {
        return is_same("the slot is on its way", from_, false,
                       {"EVAL", "redis.call('DEL', KEYS[1]) return redis.call('EXISTS', KEYS[1])",
                        "1", moved_keys.front()});
    }
    bool is_same(const char* when, std::size_t at, bool asking, const Line& words) {
        if (asking) (void)links_[at].command({"ASKING"});
        lab::Reply answered = links_[at].command(words);
        const std::string bytes = simulated_[at]->ask(words, asking);
        std::size_t end = 0;
        lab::Reply simulated = read_reply(bytes, end);
        const bool nodes = words.back() == "NODES";
        for (lab::Reply* one : {&answered, &simulated}) {
            leave_out_places(*one);
            rename(*one);
            if (nodes) one->text = nodes_in(one->text);
            count(*one);
        }
        if (simulated == answered) return true;
        std::string shown;
        for (const std::string& word : words)
            shown += " " + word;
        std::printf("%s, server %zu%s:%s\n  simulated: %s\n  real: %s\n", when, at,
                    asking ? ", asking" : "", shown.c_str(), to_string(simulated).c_str(),
                    to_string(answered).c_str());
        return false;
    }

    /// All keys are there.
    void begin_move() {
        for (const std::string& key : moved_keys) {
            (void)links_[from_].command({"SET", key, "x"});
            (void)simulated_[from_]->ask({"SET", key, "x"}, false);
        }
        real_.begin_move(slot_, to_);
        simulated_[to_]->begin_coming(slot_);
        simulated_[from_]->begin_leaving(slot_, to_);
    }
    void move_keys(std::size_t at_most) {
        for (const std::string& key : simulated_[from_]->keys_in(slot_)) {
            if (at_most-- == 0) break;
            simulated_[from_]->move_key(key, *simulated_[to_]);
            const auto port = std::to_string(real_.server(to_).port());
            (void)links_[from_].command(
                {"MIGRATE", "127.0.0.1", port, key, "0", "10000", "REPLACE"});
        }
    }
    void end_move() {
        real_.end_move(slot_, to_);
        // An epoch above all: that is how the others learn of it.
        simulated_[to_]->own(slot_, servers_of_each + 1);
        for (std::size_t i = 0; i < servers_of_each; ++i)
            if (i != to_) simulated_[i]->hear(*simulated_[to_]);
        const std::string has_it = " " + std::to_string(servers_of_each + 1) + " connected";
        for (lab::RedisConnection& link : links_)
            lab::wait_until(
                [&] {
                    return link.command({"CLUSTER", "NODES"}).text.find(has_it) != has_it.npos;
                },
                lab::default_cap, "the servers know the epoch");
    }
    /// Only one server of each is left, which takes the cluster for down.
    void leave_alone() {
        alone_ = true;
        for (std::size_t i = 0; i < servers_of_each; ++i)
            if (i != to_) real_.server(i).kill();
        simulated_[to_]->fail_until(never);
        lab::wait_until(
            [&] {
                return links_[to_].command({"GET", "t"}).text.starts_with("CLUSTERDOWN");
            },
            std::chrono::seconds(30), "it misses the others");
    }
    /// What was seen: each first word of an error, and how often.
    const std::map<std::string, std::uint64_t>& seen() const { return seen_; }

private:
    /// Hosts, ports and ids of the real servers become those of the simulated ones.
    void rename(lab::Reply& r) {
        for (std::size_t i = 0; i < servers_of_each; ++i) {
            const auto port = std::to_string(real_.server(i).port());
            replace(r.text, "127.0.0.1:" + port, host(i) + ":6379");
        }
        for (const auto& [id, server] : ids_)
            replace(r.text, id, ClusterServer::id_of(server));
        auto& e = r.elements;
        if (e.size() >= 2 && e[0].text == "127.0.0.1")
            for (std::size_t i = 0; i < servers_of_each; ++i)
                if (e[1].integer == real_.server(i).port())
                    e[0].text = host(i), e[1].integer = 6379;
        for (lab::Reply& one : e)
            rename(one);
    }
    static void replace(std::string& in, const std::string& what, const std::string& by) {
        for (auto at = in.find(what); at != in.npos; at = in.find(what, at + by.size()))
            in.replace(at, what.size(), by);
    }
    /// "ID FLAGS PRIMARY EPOCH SLOT...", without times, addresses, and whom a server has missed.
    static std::string nodes_in(const std::string& text) {
        std::map<std::string, std::string> lines;
        std::istringstream all(text);
        for (std::string line; std::getline(all, line);) {
            std::istringstream in(line);
            std::string id, address, flags, primary, ping, pong, since, link;
            in >> id >> address >> flags >> primary >> ping >> pong >> since >> link;
            std::string& out = lines[id];
            out = flags.substr(0, flags.find(",fail")) + " " + primary + " " + since;
            for (std::string slots; in >> slots;)
                out += " " + slots;
        }
        std::string out;
        for (const auto& [id, line] : lines)
            out += id + " " + line + "\n";
        return out;
    }
    void count(const lab::Reply& r) {
        if (r.is_error()) ++seen_[r.text.substr(0, r.text.find(' '))];
    }

    static lab::RedisClusterOptions quick() {
        lab::RedisClusterOptions o;
        o.node_timeout = std::chrono::milliseconds(1000);
        return o;
    }
    Random random_;
    Kernel kernel_;
    lab::RedisCluster real_ = lab::RedisCluster::start(quick());
    std::vector<lab::RedisConnection> links_;
    std::vector<std::unique_ptr<ClusterServer>> simulated_;
    std::map<std::string, std::size_t> ids_;
    Slot slot_ = 0;
    std::size_t from_ = 0, to_ = 0;
    bool alone_ = false;
    std::map<std::string, std::uint64_t> seen_;
};

}  // namespace

int compare_redis_cluster(std::uint64_t seed, std::uint64_t requests) {
    ClusterPair pair(seed);
    std::uint64_t differ = 0;
    const auto compare = [&](const char* when) {
        for (std::uint64_t i = 0; i < requests / 6 && differ < 10; ++i)
            differ += pair.ask(when) ? 0 : 1;
    };
    compare("before the move");
    pair.begin_move();
    differ += pair.cut_short() ? 0 : 1;
    compare("the slot is on its way");
    pair.move_keys(1);
    compare("one key has gone");
    pair.move_keys(servers_of_each * servers_of_each);
    compare("all keys have gone");
    pair.end_move();
    compare("after the move");
    pair.leave_alone();
    compare("one is left");
    std::string shown;
    bool all = true;
    for (const char* word : {"MOVED", "ASK", "TRYAGAIN", "CROSSSLOT", "CLUSTERDOWN", "access"}) {
        const auto at = pair.seen().find(word);
        all = all && at != pair.seen().end();
        shown += std::string(shown.empty() ? "" : ", ") + word + " " +
                 std::to_string(at == pair.seen().end() ? 0 : at->second);
    }
    std::printf("redis-cluster: seed %llu, %llu requests, %llu differ (%s)\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(requests),
                static_cast<unsigned long long>(differ), shown.c_str());
    if (!all) std::puts("some of these answers never came, so nothing is shown of them");
    return differ == 0 && all ? 0 : 1;
}

}  // namespace holdfast::sim
