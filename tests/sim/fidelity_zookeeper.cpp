// The same random requests to a simulated ZooKeeper server and to a real one, by three clients over
// the wire protocol. Numbers of transactions are compared as differences to the first one, sessions
// by when they were opened; times are left out, and the order of children, which no server
// promises.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <stdexcept>

#include "fidelity.hpp"
#include "zookeeper_bed.hpp"
#include "zookeeper_wire.hpp"

namespace holdfast::sim {
namespace {

using wire::Type;

struct Request {
    std::int32_t type = 0;
    std::string body;
    std::string shown;
    std::int64_t since = 0;  ///< of watches that are set again: how many transactions ago
};

/// Requests that meet each other: few paths, few values, and what was created last.
class Requests {
public:
    explicit Requests(Random& r) : r_(r) {}

    Request next() {
        if (made_.size() > 30) {
            const std::string oldest = made_.front();
            made_.pop_front();
            return {wire::remove, zk_remove(oldest), "delete " + oldest};
        }
        const auto kind = r_.below(100);
        if (kind < 28) return create();
        if (kind < 42) return remove();
        if (kind < 52) return set();
        if (kind < 64) return multi();
        if (kind < 75) return read(wire::get_data);
        if (kind < 86) return read(wire::get_children);
        if (kind < 90) return forget_watch();
        if (kind < 94) return {wire::sync, wire::Writer().text("/f").bytes, "sync"};
        if (kind < 97) return {wire::ping, {}, "ping"};
        return set_watches();
    }
    void created(const std::string& path) {
        if (path.size() > 10 && path.find("n-") != path.npos) made_.push_back(path);
    }

private:
    template <class T>
    T one_of(std::initializer_list<T> all) {
        return *(all.begin() + r_.below(all.size()));
    }
    std::string path() {
        if (!made_.empty() && r_.chance(200)) return made_[r_.below(made_.size())];
        return one_of<const char*>({"/f", "/f/a", "/f/a", "/f/b", "/f/b", "/f/c", "/f/a/x",
                                    "/f/a/y", "/f/b/x", "/f/a/x/z"});
    }
    std::string data() { return one_of<const char*>({"", "hf1 2000 owner", "revoked", "-5"}); }
    std::int32_t version() { return one_of<std::int32_t>({-1, -1, -1, 0, 1, 2}); }

    Request create(bool in_multi = false) {
        auto type = one_of<std::int32_t>(
            {wire::create, wire::create, wire::create2, wire::create2, wire::create_container});
        std::int32_t flags =
            type == wire::create_container ? 4 : one_of<std::int32_t>({0, 0, 1, 3, 2});
        std::string where = path();
        if ((flags & 2) != 0) {
            where = one_of<const char*>({"/f/n-", "/f/a/n-", "/f/a/x/n-", "/f/b/n-"});
        } else if (where.find("n-") != where.npos) {
            flags = 0;
        }
        // 3.9 answers a create2 in a multi with the node's status, earlier servers as a create;
        // nothing of ours sends it.
        if (in_multi && flags != 4) type = wire::create;
        return {type, zk_create(where, data(), flags),
                "create " + where + " type " + std::to_string(type) + " flags " +
                    std::to_string(flags)};
    }
    Request remove() {
        const std::string where = path();
        const auto v = version();
        return {wire::remove, zk_remove(where, v), "delete " + where + " " + std::to_string(v)};
    }
    Request set() {
        const std::string where = path();
        const auto v = version();
        return {wire::set_data, zk_set(where, data(), v), "set " + where + " " + std::to_string(v)};
    }
    Request multi() {
        Request all{wire::multi, {}, "multi"};
        for (auto n = r_.below(4); n > 0; --n) {
            const Request one = r_.chance(400) ? create(true) : r_.chance(500) ? remove() : set();
            all.body += wire::Writer().int32(one.type).flag(false).int32(-1).bytes + one.body;
            all.shown += " (" + one.shown + ")";
        }
        all.body += wire::Writer().int32(-1).flag(true).int32(-1).bytes;
        return all;
    }
    Request read(std::int32_t type) {
        const std::string where = path();
        const bool watch = r_.chance(500);
        return {type, zk_read(where, watch),
                (type == wire::get_data ? "get " : "list ") + where + (watch ? ", watched" : "")};
    }
    Request forget_watch() {
        const std::string where = path();
        const std::int32_t which = 1 + static_cast<std::int32_t>(r_.below(2));
        return {wire::remove_watches, wire::Writer().text(where).int32(which).bytes,
                "forget watch " + std::to_string(which) + " of " + where};
    }
    Request set_watches() {
        std::vector<std::string> data, child;
        for (auto n = r_.below(3); n > 0; --n)
            data.push_back(path());
        for (auto n = r_.below(3); n > 0; --n)
            child.push_back(path());
        Request q{wire::set_watches_again, wire::Writer().texts(data).texts({}).texts(child).bytes,
                  "set watches"};
        q.since = static_cast<std::int64_t>(r_.below(20));
        for (const std::string& p : data)
            q.shown += " " + p;
        for (const std::string& p : child)
            q.shown += " children of " + p;
        return q;
    }

    Random& r_;
    std::deque<std::string> made_;
};

/// What one server and its three clients see, in words without what differs by nature.
class Side {
public:
    explicit Side(ZkBed& bed) : bed_(bed) {
        for (int i = 0; i < 3; ++i)
            clients_.emplace_back(bed_);
    }

    /// A new session, or the same one over another connection.
    std::string open(std::size_t i, int timeout_ms) {
        ZkClient& c = clients_[i];
        c.dial(0, timeout_ms);
        const auto words =
            wait_for(c, [](const ZkWord& w) { return w.kind == ZkWord::Kind::greeting; });
        if (words.empty()) return "hung up";
        if (c.session != 0 && !sessions_.contains(c.session))
            sessions_.emplace(c.session, sessions_.size() + 1);
        return named(c.session) + ", " + std::to_string(c.timeout_ms) + " ms" +
               (c.session == 0 && !ended(c) ? ", and is not hung up on" : "");
    }
    /// The earlier connection stays open until the server closes it.
    std::string resume(std::size_t i, int timeout_ms, bool wrong_password) {
        ZkClient& c = clients_[i];
        const std::int64_t session = c.session;
        const std::string password = c.password;
        const auto earlier = c.put_aside();
        if (wrong_password) c.password[3] = static_cast<char>(c.password[3] + 1);
        std::string out = open(i, timeout_ms);
        const Nanos until = bed_.now() + cap;
        while (!earlier->ended() && bed_.now() < until) {
            bed_.pass(until);
            static_cast<void>(earlier->take());
        }
        if (!earlier->ended()) out += ", beside the earlier connection";
        if (!wrong_password) return out;
        c.session = session;
        c.password = password;
        return out + ", then " + open(i, timeout_ms);
    }
    std::string close(std::size_t i) {
        any_order = true;
        std::string out = ask(i, {wire::close_session, {}, {}});
        if (!ended(clients_[i])) out += ", and is not hung up on";
        clients_[i].forget();
        return out;
    }
    std::string ask(std::size_t i, const Request& q) {
        ZkClient& c = clients_[i];
        std::string body = q.body;
        if (q.type == wire::set_watches_again)
            body = wire::Writer().int64(c.seen - q.since).bytes + body;
        const std::int32_t xid = c.ask(q.type, body);
        const auto words = wait_for(
            c, [&](const ZkWord& w) { return w.kind == ZkWord::Kind::answer && w.xid == xid; });
        if (words.empty()) return "no answer";
        std::vector<std::string> events;
        for (const ZkWord& w : words)
            if (w.kind == ZkWord::Kind::event)
                events.push_back("event " + std::to_string(w.event) + " " + w.path + "; ");
        // A session's nodes go in no order.
        if (any_order) std::sort(events.begin(), events.end());
        std::string out;
        for (const std::string& e : events)
            out += e;
        const ZkWord& answer = words.back();
        if (first_ == 0) first_ = answer.zxid;
        out += std::to_string(answer.error) + " at " + std::to_string(answer.zxid - first_);
        try {
            if (answer.error == 0) out += described(q.type, answer.body);
        } catch (const std::out_of_range&) {
            out += " cut short";
        }
        return out;
    }
    std::vector<std::string> made;  ///< by the last request
    bool any_order = false;

private:
    static constexpr Nanos cap = 20 * second;

    template <class Is>
    std::vector<ZkWord> wait_for(ZkClient& c, Is is) {
        std::vector<ZkWord> all;
        const Nanos until = bed_.now() + cap;
        for (;;) {
            for (ZkWord& w : c.read())
                all.push_back(std::move(w));
            if (!all.empty() && is(all.back())) return all;
            if (c.ended() || bed_.now() >= until) return {};
            bed_.pass(until);
        }
    }
    bool ended(ZkClient& c) {
        const Nanos until = bed_.now() + cap;
        while (!c.ended() && bed_.now() < until) {
            bed_.pass(until);
            c.read();
        }
        return c.ended();
    }
    std::string named(std::int64_t session) const {
        if (session == 0) return "no session";
        const auto at = sessions_.find(session);
        return at == sessions_.end() ? "unknown session" : "session " + std::to_string(at->second);
    }
    std::string stat(wire::Reader& r) const {
        const std::int64_t czxid = r.int64() - first_, mzxid = r.int64() - first_;
        r.int64();  // two times
        r.int64();
        std::string out = " {" + std::to_string(czxid) + " " + std::to_string(mzxid);
        for (int i = 0; i < 3; ++i)
            out += " " + std::to_string(r.int32());
        out += " " + named(r.int64());
        for (int i = 0; i < 2; ++i)
            out += " " + std::to_string(r.int32());
        return out + " " + std::to_string(r.int64() - first_) + "}";
    }
    std::string result(std::int32_t type, wire::Reader& r) {
        switch (type) {
            case wire::create:
                made.push_back(r.text());
                return " " + made.back();
            case wire::create2:
            case wire::create_container:
                made.push_back(r.text());
                return " " + made.back() + (r.done() ? "" : stat(r));
            case wire::set_data:
                return stat(r);
            default:
                return {};
        }
    }
    std::string described(std::int32_t type, const std::string& body) {
        wire::Reader r(body);
        std::string out;
        if (type == wire::get_data) {
            out = " '" + r.text() + "'";
            out += stat(r);
        } else if (type == wire::get_children) {
            auto children = r.texts();
            std::sort(children.begin(), children.end());
            for (const std::string& child : children)
                out += " " + child;
        } else if (type == wire::sync) {
            out = " " + r.text();
        } else if (type == wire::multi) {
            for (;;) {
                const std::int32_t one = r.int32();
                const bool last = r.flag();
                const std::int32_t error = r.int32();
                out += " [" + std::to_string(one) + " " + std::to_string(error);
                if (!last) out += one == -1 ? " " + std::to_string(r.int32()) : result(one, r);
                out += "]";
                if (last) break;
            }
        } else {
            out = result(type, r);
        }
        return out + (r.done() ? "" : " and more");
    }

    ZkBed& bed_;
    std::deque<ZkClient> clients_;
    std::map<std::int64_t, std::size_t> sessions_;
    std::int64_t first_ = 0;
};

}  // namespace

int compare_zookeeper(std::uint64_t seed, std::uint64_t count) {
    const auto simulated_bed = make_simulated_bed({}, seed), real_bed = make_real_bed({});
    Side simulated(*simulated_bed), real(*real_bed);
    Random r(seed);
    Requests requests(r);
    std::uint64_t differ = 0;
    std::array<bool, 3> unsorted{};  // a session has ended since this client's last answer
    const auto compare = [&](std::uint64_t i, const std::string& what, const auto& ask) {
        const std::string a = ask(simulated), b = ask(real);
        if (a == b) return;
        ++differ;
        std::printf("request %llu: %s\n  simulated: %s\n  real:      %s\n",
                    static_cast<unsigned long long>(i), what.c_str(), a.c_str(), b.c_str());
    };
    const auto timeout = [&] { return r.chance(100) ? 1000 : r.chance(500) ? 10'000 : 20'000; };
    for (std::size_t c = 0; c < 3; ++c)
        compare(0, "open", [&](Side& s) { return s.open(c, 20'000); });
    compare(0, "create /f", [&](Side& s) {
        return s.ask(0, {wire::create, zk_create("/f", "", 0), {}});
    });
    for (std::uint64_t i = 1; i <= count && differ < 10; ++i) {
        const auto c = static_cast<std::size_t>(r.below(3));
        const std::string client = "client " + std::to_string(c) + ": ";
        const int asked = timeout();
        switch (r.below(150)) {
            case 0:
                compare(i, client + "close", [&](Side& s) { return s.close(c); });
                compare(i, client + "open", [&](Side& s) { return s.open(c, asked); });
                unsorted.fill(true);
                continue;
            case 1: {
                const bool wrong = r.chance(300);
                compare(i, client + (wrong ? "a wrong password" : "resume"),
                        [&](Side& s) { return s.resume(c, asked, wrong); });
                continue;
            }
            default:
                break;
        }
        const Request q = requests.next();
        compare(i, client + q.shown, [&](Side& s) {
            s.made.clear();
            s.any_order = unsorted.at(c);
            return s.ask(c, q);
        });
        unsorted.at(c) = false;
        for (const std::string& path : real.made)
            requests.created(path);
    }
    std::printf("zookeeper: seed %llu, %llu requests, %llu differ\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(differ));
    return differ == 0 ? 0 : 1;
}

}  // namespace holdfast::sim
