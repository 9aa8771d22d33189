// Sends the same random requests to a simulated server and to a real one, and compares the answers:
// a simulation shows something only as far as its servers do what the real ones do. What differs by
// nature is left out: identities of leases, and etcd's remaining times.
#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/redis_connection.hpp>
#include <holdfast/lab/redis_server.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "../models/redis/server.hpp"
#include "etcd_store.hpp"
#include "fidelity.hpp"
#include "kernel.hpp"

namespace {

namespace js = boost::json;
namespace lab = holdfast::lab;
using holdfast::sim::base64;
using holdfast::sim::Random;

using Words = std::vector<std::string>;

template <class T>
const T& one_of(Random& r, const std::vector<T>& all) {
    return all[r.below(all.size())];
}

// --- Redis

/// A reply of the simulated server, read as the lab reads the real one's.
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

/// One that the scripts and the backends send, with arguments that meet each other often.
Words redis_command(Random& r) {
    static const Words keys{"a", "b", "c", "d"}, members{"m", "n", "o", "m#2", ""},
        scores{"0", "1", "2.5", "-3", "1790000000123.25", "9007199254740993", "0.1"},
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

/// Where an error arose in a script is told in words of each server's own.
void leave_out_places(lab::Reply& r) {
    if (r.is_error())
        for (const char* known : {"WRONGTYPE", "READONLY"})
            if (r.text.find(known) != r.text.npos) r.text = known;
    for (lab::Reply& e : r.elements)
        leave_out_places(e);
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
        for (const auto& [key, value] : store_.keys)
            if (before != after && value.expires >= 0 && value.expires <= after)
                unclear.push_back(key);
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
            difference = "simulated: " + to_string(simulated) + ", real: " + to_string(answered);
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

// --- etcd

namespace asio = boost::asio;
namespace http = boost::beast::http;

/// A bare client of the gateway.
class Gateway {
public:
    explicit Gateway(std::uint16_t port) : socket_(context_) {
        socket_.connect({asio::ip::address_v4::loopback(), port});
    }
    js::object post(const std::string& path, const js::object& body) {
        http::request<http::string_body> request(http::verb::post, "/v3/" + path, 11);
        request.set(http::field::host, "etcd");
        request.body() = js::serialize(body);
        request.prepare_payload();
        http::write(socket_, request);
        http::response<http::string_body> answer;
        http::read(socket_, buffer_, answer);
        return js::parse(answer.body()).as_object();
    }

private:
    asio::io_context context_;
    asio::ip::tcp::socket socket_;
    boost::beast::flat_buffer buffer_;
};

struct Request {
    std::string path;
    js::object body;
};

/// Requests that meet each other: few keys, few values, leases that come and go. Where "lease" or
/// "ID" is a number below 100, it stands for the lease that was granted as so many-th.
class Requests {
public:
    explicit Requests(Random& r) : r_(r) {}

    Request next() {
        Request out;
        switch (r_.below(12)) {
            case 0:
                ++leases_;
                out.path = "lease/grant";
                out.body["TTL"] = one_of(r_, std::vector<std::string>{"600", "3600"});
                break;
            case 1:
                out.path = "lease/revoke";
                out.body["ID"] = lease();
                break;
            case 2:
                out.path = r_.chance(500) ? "lease/keepalive" : "lease/timetolive";
                out.body["ID"] = lease();
                break;
            case 3:
            case 4:
                out.path = "kv/range";
                out.body = range();
                break;
            default:
                out.path = "kv/txn";
                deletable_.clear();
                for (const std::string& k : keys())
                    if (r_.chance(400)) deletable_.insert(k);
                used_.clear();
                out.body = transaction(r_.chance(400) ? 1 : 0);
        }
        return out;
    }

private:
    static const std::vector<std::string>& keys() {
        static const std::vector<std::string> all{"f/a", "f/b", "f/b/", "f/b/1", "f/b/2", "f/c"};
        return all;
    }
    std::string lease() {
        return std::to_string(1 + r_.below(std::max(1, std::min(leases_ + 1, 90))));
    }
    std::string value() {
        static const std::vector<std::string> all{"", "hf1 x", "hf1s x", "hf1p5:3 y", "hf1t"};
        return base64(one_of(r_, all));
    }
    void span(js::object& o) {
        const std::string& from = one_of(r_, keys());
        o["key"] = base64(from);
        if (r_.chance(400)) o["range_end"] = base64(one_of(r_, keys()) + "0");
    }
    js::object range() {
        js::object o;
        span(o);
        if (r_.chance(300)) o["limit"] = std::to_string(1 + r_.below(3));
        if (r_.chance(300)) o["keys_only"] = true;
        return o;
    }
    js::object comparison() {
        js::object o;
        span(o);
        o["result"] = one_of(r_, std::vector<std::string>{"EQUAL", "GREATER", "LESS", "NOT_EQUAL"});
        const std::string revision = std::to_string(r_.chance(500) ? 0 : 1 + r_.below(40));
        switch (r_.below(4)) {
            case 0:
                o["target"] = "CREATE";
                o["create_revision"] = revision;
                break;
            case 1:
                o["target"] = "MOD";
                o["mod_revision"] = revision;
                break;
            case 2:
                o["target"] = "VERSION";
                o["version"] = std::to_string(r_.below(4));
                break;
            default:
                o["target"] = "VALUE";
                o["value"] = value();
        }
        return o;
    }
    js::object operation(int depth) {
        js::object inner, out;
        const auto kind = r_.below(depth > 0 ? 8 : 6);
        if (kind < 3) {
            // A key twice in one transaction is refused, as are a put and a deletion of it.
            const std::string key = one_of(r_, keys());
            if (!deletable_.contains(key) && used_.insert(key).second) {
                inner["key"] = base64(key);
                const auto how = r_.below(6);
                if (how != 0) inner["value"] = value();
                if (how == 0) inner["ignore_value"] = true;
                if (how == 1)
                    inner["ignore_lease"] = true;
                else if (r_.chance(400))
                    inner["lease"] = lease();
                out["request_put"] = std::move(inner);
                return out;
            }
        } else if (kind < 5 && !deletable_.empty()) {
            const std::vector<std::string> some(deletable_.begin(), deletable_.end());
            inner["key"] = base64(one_of(r_, some));
            if (r_.chance(500)) inner["prev_kv"] = true;
            out["request_delete_range"] = std::move(inner);
            return out;
        } else if (kind >= 6) {
            out["request_txn"] = transaction(0);
            return out;
        }
        out["request_range"] = range();
        return out;
    }
    js::object transaction(int depth) {
        js::object out;
        js::array compare, success, failure;
        for (auto n = r_.below(3); n > 0; --n)
            compare.push_back(comparison());
        for (auto n = r_.below(4); n > 0; --n)
            success.push_back(operation(depth));
        for (auto n = r_.below(3); n > 0; --n)
            failure.push_back(operation(depth));
        if (!compare.empty()) out["compare"] = std::move(compare);
        if (!success.empty()) out["success"] = std::move(success);
        if (!failure.empty()) out["failure"] = std::move(failure);
        return out;
    }

    Random& r_;
    int leases_ = 0;
    std::set<std::string> deletable_, used_;
};

/// The names of leases that both sides know by different numbers.
class Leases {
public:
    void granted(const js::object& answer) {
        if (answer.contains("ID")) ids_.push_back(holdfast::sim::text_in(answer, "ID"));
    }
    /// Of a request: the number instead of the name.
    void give(js::value& v) const { change(v, true); }
    /// Of an answer: the name instead of the number, and nothing that differs by nature.
    void take(js::value& v) const { change(v, false); }

private:
    void change(js::value& v, bool give) const {
        if (js::array* all = v.if_array())
            for (js::value& one : *all)
                change(one, give);
        js::object* o = v.if_object();
        if (o == nullptr) return;
        if (!give) {
            if (js::object* header = o->contains("header") ? o->at("header").if_object() : nullptr)
                for (const char* own : {"cluster_id", "member_id", "raft_term"})
                    header->erase(own);
            if (o->contains("grantedTTL")) o->erase("TTL");
        }
        for (auto& [name, inner] : *o) {
            if (name == "lease" || name == "ID")
                inner = give ? number(std::string(inner.as_string()))
                             : js::value(named(std::string(inner.as_string())));
            else
                change(inner, give);
        }
    }
    js::value number(const std::string& name) const {
        const std::size_t n = std::stoul(name);
        return js::value(n >= 1 && n <= ids_.size() ? ids_[n - 1] : "424242");
    }
    std::string named(const std::string& number) const {
        for (std::size_t i = 0; i < ids_.size(); ++i)
            if (ids_[i] == number) return "lease " + std::to_string(i + 1);
        return "unknown";
    }
    std::vector<std::string> ids_;
};

void erase_headers(js::value& v) {
    if (js::array* all = v.if_array())
        for (js::value& one : *all)
            erase_headers(one);
    if (js::object* o = v.if_object()) {
        o->erase("header");
        for (auto& [name, inner] : *o)
            erase_headers(inner);
    }
}

/// Headers of the parts of a transaction tell less than that of the whole, and nobody reads them.
void only_outer_header(js::object& answer) {
    if (answer.contains("responses")) erase_headers(answer["responses"]);
}

js::object simulate(holdfast::sim::EtcdStore& store, const Request& q) {
    const auto ask = [&]() -> js::object {
        if (q.path == "kv/txn") return store.transaction(q.body);
        if (q.path == "kv/range") return store.range(q.body);
        if (q.path == "lease/grant") return store.grant(q.body);
        if (q.path == "lease/revoke") return store.revoke(q.body);
        if (q.path == "lease/timetolive") return store.time_to_live(q.body, 1);
        return store.keep_alive(q.body);
    };
    try {
        return ask();
    } catch (const holdfast::sim::EtcdError& e) {
        js::object out;
        out["error"] = out["message"] = e.what();
        out["code"] = e.code;
        return out;
    }
}

int etcd(std::uint64_t seed, std::uint64_t count) {
    const auto server = lab::EtcdServers::start({});
    Gateway real(server.port());
    holdfast::sim::EtcdStore store;
    Random r(seed);
    Requests requests(r);
    Leases of_real, of_simulated;
    std::uint64_t differ = 0;
    for (std::uint64_t i = 0; i < count && differ < 10; ++i) {
        const Request q = requests.next();
        js::value to_real = q.body, to_simulated = q.body;
        of_real.give(to_real);
        of_simulated.give(to_simulated);
        js::object answered = real.post(q.path, to_real.as_object()),
                   simulated = simulate(store, {q.path, to_simulated.as_object()});
        if (q.path == "lease/grant") {
            of_real.granted(answered);
            of_simulated.granted(simulated);
        }
        only_outer_header(answered);
        only_outer_header(simulated);
        js::value a = std::move(answered), b = std::move(simulated);
        of_real.take(a);
        of_simulated.take(b);
        if (a == b) continue;
        ++differ;
        std::printf("request %llu: %s %s\n  simulated: %s\n  real:      %s\n",
                    static_cast<unsigned long long>(i), q.path.c_str(),
                    js::serialize(to_simulated).c_str(), js::serialize(b).c_str(),
                    js::serialize(a).c_str());
    }
    std::printf("etcd: seed %llu, %llu requests, %llu differ\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(differ));
    return differ == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count < 3) {
        std::fputs(
            "fidelity redis|etcd|zookeeper REQUESTS [SEED]   a new seed by default\n"
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
        if (which == "etcd") return etcd(seed, requests);
        if (which == "zookeeper") return holdfast::sim::compare_zookeeper(seed, requests);
        std::fprintf(stderr, "there is no simulated %s\n", which.c_str());
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
    }
    return 2;
}
