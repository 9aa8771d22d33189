// Sends the same random requests to a simulated server and to a real one, and compares the answers:
// a simulation shows something only as far as its servers do what the real ones do. Here Redis.
#include <algorithm>
#include <array>
#include <cstdio>
#include <holdfast/lab/redis_connection.hpp>
#include <holdfast/lab/redis_server.hpp>
#include <random>
#include <string>
#include <vector>

#include "../models/redis/server.hpp"
#include "fidelity.hpp"
#include "kernel.hpp"

namespace {

namespace lab = holdfast::lab;
using holdfast::sim::leave_out_places;
using holdfast::sim::Random;
using holdfast::sim::read_reply;

using Words = std::vector<std::string>;

template <class T>
const T& one_of(Random& r, const std::vector<T>& all) {
    return all[r.below(all.size())];
}

// --- Redis

/// One that the scripts and the backends send, with arguments that meet each other often. Fractions
/// are exact in binary: Redis 7.2 prints others with fewer digits than earlier ones.
Words redis_command(Random& r) {
    static const Words keys{"a", "b", "c", "d"}, members{"m", "n", "o", "m#2", ""},
        scores{"0", "1", "2.5", "-3", "1790000000123.25", "9007199254740993", "0.125"},
        texts{"", "x", "hf:s:1", "long text with\r\nlines"}, indexes{"0", "1", "-1", "-2", "7"},
        times{"1", "3", "7", "20", "600000"};
    const std::string key = one_of(r, keys), member = one_of(r, members);
    switch (r.below(21)) {
        case 0:
            return {"SET", key, one_of(r, texts)};
        case 1:
            return {"SET", key, one_of(r, texts), "NX"};
        case 2:
            return {"SET", key, one_of(r, texts), "NX", "PX", one_of(r, times)};
        case 3:
            return {"SET", key, one_of(r, texts), "PX", one_of(r, times)};
        case 4:
            return {"SET", key, one_of(r, texts), "KEEPTTL"};
        case 5:
            return {"GET", key};
        case 6:
            return {"DEL", key};
        case 7:
            return {"EXISTS", key, one_of(r, keys)};
        case 8:
            return {"PEXPIRE", key, one_of(r, times)};
        case 9:
            return {"ZADD", key, one_of(r, scores), member, one_of(r, scores), one_of(r, members)};
        case 10:
            return {"ZCARD", key};
        case 11:
            return {"ZREM", key, member};
        case 12:
            return {"ZSCORE", key, member};
        case 13:
            return {"ZRANK", key, member};
        case 14: {
            Words w{"ZRANGE", key, one_of(r, indexes), one_of(r, indexes)};
            if (r.chance(500)) w.push_back("WITHSCORES");
            return w;
        }
        case 15:
            return {"ZREMRANGEBYSCORE", key, "-inf", one_of(r, scores)};
        case 16:
            return {"HSET", key, member, one_of(r, texts)};
        case 17:
            return {"HGET", key, member};
        case 18:
            return {"HDEL", key, member};
        case 19:
            return {"PUBLISH", key, one_of(r, texts)};
        default:
            return {"PUBSUB", "NUMSUB", key};
    }
}

/// What becomes of an answer in Lua, and of Lua's values on the way back.
Words redis_script(Random& r) {
    static const Words bodies{
        "return redis.call(unpack(ARGV))",
        "return redis.pcall(unpack(ARGV))",
        "local v = redis.pcall(unpack(ARGV)) return {type(v), v}",
        "local v = redis.pcall(unpack(ARGV)) if type(v) == 'table' and v.err then return 'E ' .. "
        "v.err end "
        "return {v, 1, 2.9, true}",
        "return {redis.call('EXISTS', KEYS[1]), redis.pcall(unpack(ARGV)), false, 'after a false'}",
        "local v = redis.pcall('GET', KEYS[1]) if v and type(v) == 'string' then return v .. '!' "
        "end return v",
        "local v = redis.pcall('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') "
        "if v.err then return {err = v.err} end return {#v, tonumber(v[2] or '7'), "
        "tostring(#ARGV)}",
        "return {ok = 'FINE ' .. #ARGV}",
        "local v = redis.pcall(unpack(ARGV)) return string.format('%.0f', 1790000000123 + #KEYS)",
        "return redis.call('PTTL', KEYS[1]) > 0",
        "return redis.call('PTTL', KEYS[1]) < 0",
    };
    const Words command = redis_command(r);
    Words out{"EVAL", one_of(r, bodies), "1", command.at(1)};
    out.insert(out.end(), command.begin(), command.end());
    return out;
}

std::string shown(const Words& words) {
    std::string out;
    for (const std::string& w : words)
        out += (out.empty() ? "" : " ") + (w.empty() ? "''" : w);
    return out;
}

/// The real server's clock, in ms.
std::int64_t clock_of(lab::RedisConnection& real) {
    const auto now = real.command({"TIME"});
    return std::stoll(now.elements.at(0).text) * 1000 + std::stoll(now.elements.at(1).text) / 1000;
}

/// Both servers, the simulated one with the real one's clock, and a client of each that listens.
class RedisPair {
public:
    RedisPair(const lab::RedisServer& server, std::uint64_t seed)
        : real_("127.0.0.1", server.port()), ears_("127.0.0.1", server.port()), random_(seed) {}

    /// One request to both. False: the answers differ, or what is left of the key's time, or what
    /// the listener heard, and it was printed.
    bool ask(std::uint64_t number) {
        if (random_.chance(20)) listen_or_not();
        if (random_.chance(30)) outlive();
        const bool script = random_.chance(400);
        const Words words = script ? redis_script(random_) : redis_command(random_);
        const auto before = clock_of(real_);
        lab::Reply answered = real_.command(words);
        const auto after = clock_of(real_);
        for (const auto& [key, value] : store_.keys)
            lapsed_ += value.expires >= 0 && value.expires < before ? 1 : 0;
        store_.now = before;
        store_.sweep();
        // Keys that were there at one of these times and not at the other: any answer is right, and
        // both servers lose them. What is published depends on no key.
        Words unclear;
        std::string ends;
        for (const auto& [key, value] : store_.keys) {
            if (value.expires < 0) continue;
            ends += ", " + key + " ends at " + std::to_string(value.expires);
            if (before != after && value.expires <= after) unclear.push_back(key);
        }
        const std::string bytes =
            script ? lua_.evaluate(words[1], {words[3]}, Words(words.begin() + 4, words.end()),
                                   store_, wire_)
                   : lua_.call(words, store_, wire_);
        std::size_t at = 0;
        lab::Reply simulated = read_reply(bytes, at);
        leave_out_places(simulated);
        leave_out_places(answered);
        const std::string heard = difference_in_hearing();
        std::string difference;
        for (const auto& key : unclear) {
            (void)real_.command({"DEL", key});
            store_.keys.erase(key);
        }
        if (unclear.empty() && !(simulated == answered))
            difference = "simulated: " + to_string(simulated) + ", real: " + to_string(answered) +
                         ", at " + std::to_string(before) + " to " + std::to_string(after) + ends;
        else if (!heard.empty())
            difference = heard;
        else
            difference = difference_in_time(words.at(script ? 3 : 1), after - before);
        if (difference.empty()) return true;
        std::printf("request %llu: %s\n  %s\n", static_cast<unsigned long long>(number),
                    shown(words).c_str(), difference.c_str());
        return false;
    }

    std::uint64_t lapsed() const { return lapsed_; }
    std::uint64_t heard() const { return heard_; }

private:
    /// Until the key that ends first is over, if it is one of those with a short time.
    void outlive() {
        std::int64_t first = -1;
        for (const auto& [key, value] : store_.keys)
            if (value.expires >= 0 && (first < 0 || value.expires < first)) first = value.expires;
        if (first >= 0 && first < store_.now + 1000)
            lab::wait_until([&] { return clock_of(real_) > first; }, lab::default_cap, "its end");
    }

    void listen_or_not() {
        const std::string channel = random_.chance(500) ? "a" : "b";
        int& listeners = wire_.listeners[channel];
        (void)ears_.command({listeners == 0 ? "SUBSCRIBE" : "UNSUBSCRIBE", channel});
        listeners = 1 - listeners;
    }

    /// What one request published to channels with a listener.
    std::string difference_in_hearing() {
        std::string out;
        for (const auto& [channel, text] : wire_.published) {
            if (wire_.listeners[channel] == 0) continue;
            const auto message = ears_.receive();
            ++heard_;
            if (!message || message->elements.size() != 3 || message->elements[1].text != channel ||
                message->elements[2].text != text)
                out = "heard: " + (message ? to_string(*message) : std::string("nothing"));
        }
        wire_.published.clear();
        return out;
    }

    /// When the key ends: the same, but for the time that the request may have taken. The real
    /// server's word is taken over.
    std::string difference_in_time(const std::string& key, std::int64_t took) {
        model::Value* value = store_.find(key);
        if (value == nullptr || value->expires < 0) return {};
        const auto real = real_.command({"PEXPIRETIME", key}).integer;
        // Over by now. PEXPIRE itself deletes a key whose end has come, a millisecond before a look
        // at the key would.
        if (real == -2 && clock_of(real_) >= value->expires) {
            store_.keys.erase(key);
            return {};
        }
        if (std::abs(real - value->expires) > took)
            return "ends at " + std::to_string(value->expires) + ", the real one at " +
                   std::to_string(real);
        value->expires = real;
        return {};
    }

    lab::RedisConnection real_, ears_;
    Random random_;
    model::Lua lua_;
    model::Store store_;
    model::Wire wire_;
    std::uint64_t lapsed_ = 0, heard_ = 0;
};

int redis(std::uint64_t seed, std::uint64_t count) {
    const auto server = lab::RedisServer::start({});
    RedisPair pair(server, seed);
    std::uint64_t differ = 0;
    for (std::uint64_t i = 0; i < count && differ < 10; ++i)
        differ += pair.ask(i) ? 0 : 1;
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("redis: seed %llu, %llu requests, %llu keys lapsed, %llu messages, %llu differ\n",
                number(seed), number(count), number(pair.lapsed()), number(pair.heard()),
                number(differ));
    const bool shown = pair.lapsed() >= count / 200 && pair.heard() >= count / 500;
    if (!shown) std::puts("too few keys lapsed, or too little was heard, to show anything");
    return differ == 0 && shown ? 0 : 1;
}

}  // namespace

namespace holdfast::sim {

lab::Reply read_reply(const std::string& bytes, std::size_t& at) {
    const char kind = bytes.at(at);
    const auto end = bytes.find("\r\n", at);
    const std::string line = bytes.substr(at + 1, end - at - 1);
    at = end + 2;
    using Type = lab::Reply::Type;
    lab::Reply out;
    switch (kind) {
        case '+':
        case '-':
            out.type = kind == '+' ? Type::status : Type::error;
            out.text = line;
            break;
        case ':':
            out.type = Type::integer;
            out.integer = std::stoll(line);
            break;
        case '$':
            if (line == "-1") break;
            out.type = Type::bulk;
            out.text = bytes.substr(at, std::stoul(line));
            at += out.text.size() + 2;
            break;
        default:
            out.type = Type::array;
            for (int n = std::stoi(line); n > 0; --n)
                out.elements.push_back(read_reply(bytes, at));
    }
    return out;
}

void leave_out_places(lab::Reply& r) {
    if (r.is_error())
        for (const char* known : {"WRONGTYPE", "READONLY", "access a non local key"})
            if (r.text.find(known) != r.text.npos) r.text = known;
    for (lab::Reply& e : r.elements)
        leave_out_places(e);
}

}  // namespace holdfast::sim

int main(int count, char** words) {
    if (count < 3) {
        std::fputs(
            "fidelity redis|redis-cluster|etcd|zookeeper REQUESTS [SEED]   a new seed by default\n"
            "fidelity zookeeper-scripts quick|all [SEED]     in namespaces of its own: unshare "
            "--net --mount\n",
            stderr);
        return 2;
    }
    try {
        const std::string which = words[1];
        const std::uint64_t seed = count > 3 ? std::stoull(words[3]) : std::random_device()();
        if (which == "zookeeper-scripts")
            return holdfast::sim::compare_zookeeper_scripts(seed, words[2] == std::string("all"));
        const std::uint64_t requests = std::stoull(words[2]);
        if (which == "redis") return redis(seed, requests);
        if (which == "redis-cluster") return holdfast::sim::compare_redis_cluster(seed, requests);
        if (which == "etcd") return holdfast::sim::compare_etcd(seed, requests);
        if (which == "zookeeper") return holdfast::sim::compare_zookeeper(seed, requests);
        std::fprintf(stderr, "there is no simulated %s\n", which.c_str());
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
    }
    return 2;
}
