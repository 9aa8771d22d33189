// A real etcd and a simulated one with the same random requests and watches, over gRPC.
#include <algorithm>
#include <cstdio>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/grpc_client.hpp>
#include <holdfast/lab/protobuf_text.hpp>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "etcd.hpp"
#include "etcd_requests.hpp"
#include "fidelity.hpp"
#include "kernel.hpp"

namespace holdfast::sim {
namespace {

using Call = lab::GrpcClient::Call;
using lab::GrpcAnswer;

const std::string txn_path = "/etcdserverpb.KV/Txn", range_path = "/etcdserverpb.KV/Range",
                  grant_path = "/etcdserverpb.Lease/LeaseGrant",
                  revoke_path = "/etcdserverpb.Lease/LeaseRevoke",
                  keep_path = "/etcdserverpb.Lease/LeaseKeepAlive",
                  time_path = "/etcdserverpb.Lease/LeaseTimeToLive",
                  watch_path = "/etcdserverpb.Watch/Watch";

/// A cluster of one, and a client of it.
class Simulated {
public:
    explicit Simulated(std::uint64_t seed)
        : kernel_(seed),
          cluster_(kernel_, 1),
          route_(kernel_, machine_, cluster_.server(0)),
          socket_(std::make_shared<Socket>()),
          connection_(std::make_shared<Connection>(route_, socket_)),
          client_("simulated") {
        cluster_.slowest = 2 * ms;
        connection_->open();
    }
    Call start(const lab::GrpcClient::Request& r) { return client_.start(r); }
    void send(Call call, const std::string& message) { client_.send(call, message); }
    GrpcAnswer finish(Call call) {
        const GrpcAnswer& answer = client_.answer(call);
        go_on_until([&] { return answer.ended; });
        GrpcAnswer out = answer;
        client_.forget(call);
        return out;
    }
    std::string next(Call call) {
        GrpcAnswer& answer = client_.answer(call);
        go_on_until([&] { return !answer.messages.empty(); });
        std::string out = std::move(answer.messages.front());
        answer.messages.pop_front();
        return out;
    }
    /// All that it has to say of this is said.
    std::deque<std::string> rest(Call call) {
        bool over = false;
        kernel_.after(4 * ms, [&] { over = true; });
        go_on_until([&] { return over; });
        return std::exchange(client_.answer(call).messages, {});
    }
    EtcdStore& store() { return cluster_.store(); }

private:
    template <class Condition>
    void go_on_until(Condition reached) {
        while (!reached()) {
            if (std::string bytes = client_.output(); !bytes.empty())
                connection_->send(std::move(bytes));
            if (!kernel_.step()) throw std::runtime_error("the simulated etcd stands still");
            if (!socket_->inbox.empty()) client_.receive(std::exchange(socket_->inbox, {}));
        }
    }

    Kernel kernel_;
    EtcdCluster cluster_;
    Process machine_{.name = "client", .local = right};
    Route route_;
    std::shared_ptr<Socket> socket_;
    std::shared_ptr<Connection> connection_;
    lab::GrpcClient client_;
};

/// The leases of one side, which both know by different numbers, and what else differs by nature.
class Side {
public:
    void granted(std::int64_t id) { ids_.push_back(id); }
    std::int64_t number(std::int64_t name) const {
        constexpr std::int64_t unknown = 424242;
        if (name == 0) return 0;
        const auto n = static_cast<std::size_t>(name);
        return n <= ids_.size() ? ids_[n - 1] : unknown;
    }
    void give(rpc::TxnRequest& t) const {
        for (auto* branch : {t.mutable_success(), t.mutable_failure()})
            for (rpc::RequestOp& r : *branch) {
                if (r.has_request_put())
                    r.mutable_request_put()->set_lease(number(r.request_put().lease()));
                if (r.has_request_txn()) give(*r.mutable_request_txn());
            }
    }

    /// An answer without all that.
    std::string taken(const std::string& path, const std::string& bytes) {
        if (path == txn_path)
            return taken<rpc::TxnResponse>(bytes, [&](auto& m) { take_parts(m); });
        if (path == range_path)
            return taken<rpc::RangeResponse>(bytes, [&](auto& m) { take(*m.mutable_kvs()); });
        if (path == grant_path)
            return taken<rpc::LeaseGrantResponse>(bytes, [&](auto& m) {
                granted(m.id());
                m.set_id(name(m.id()));
            });
        if (path == revoke_path) return taken<rpc::LeaseRevokeResponse>(bytes, [](auto&) {});
        if (path == keep_path)
            return taken<rpc::LeaseKeepAliveResponse>(bytes,
                                                      [&](auto& m) { m.set_id(name(m.id())); });
        if (path == time_path)
            return taken<rpc::LeaseTimeToLiveResponse>(bytes, [&](auto& m) {
                m.set_id(name(m.id()));
                if (m.granted_ttl() != 0) m.clear_ttl();
            });
        return taken<rpc::WatchResponse>(bytes, [&](auto& m) {
            for (rpc::Event& e : *m.mutable_events())
                e.mutable_kv()->set_lease(name(e.kv().lease()));
        });
    }

private:
    template <class Message, class Change>
    static std::string taken(const std::string& bytes, Change change) {
        Message m;
        if (!m.ParseFromString(bytes)) throw std::runtime_error("an answer that is no message");
        m.mutable_header()->clear_cluster_id();
        m.mutable_header()->clear_member_id();
        m.mutable_header()->clear_raft_term();
        change(m);
        return m.SerializeAsString();
    }
    std::int64_t name(std::int64_t id) const {
        const auto at = std::find(ids_.begin(), ids_.end(), id);
        if (at != ids_.end()) return at - ids_.begin() + 1;
        return id == 0 ? 0 : -1;
    }
    template <class KeyValues>
    void take(KeyValues& all) const {
        for (auto& kv : all)
            kv.set_lease(name(kv.lease()));
    }
    /// Headers of the parts of a transaction tell less than that of the whole, and nobody reads
    /// them.
    void take_parts(rpc::TxnResponse& t) const {
        for (rpc::ResponseOp& r : *t.mutable_responses()) {
            if (r.has_response_range()) {
                r.mutable_response_range()->clear_header();
                take(*r.mutable_response_range()->mutable_kvs());
            }
            if (r.has_response_put()) r.mutable_response_put()->clear_header();
            if (r.has_response_delete_range()) {
                r.mutable_response_delete_range()->clear_header();
                take(*r.mutable_response_delete_range()->mutable_prev_kvs());
            }
            if (r.has_response_txn()) {
                r.mutable_response_txn()->clear_header();
                take_parts(*r.mutable_response_txn());
            }
        }
    }
    std::vector<std::int64_t> ids_;
};

/// What the watches of a stream were told: each event, and each word of a watch's own.
using Heard = std::map<std::int64_t, std::vector<std::string>>;

class Pair {
public:
    Pair(const lab::EtcdServers& server, std::uint64_t seed)
        : server_(server),
          random_(seed),
          requests_(random_),
          real_("127.0.0.1", server.port()),
          simulated_(seed),
          real_keeps_(real_.start({keep_path, {}, true})),
          keeps_(simulated_.start({keep_path, {}, true})),
          real_watches_(real_.start({watch_path, {}, true})),
          watches_(simulated_.start({watch_path, {}, true})) {}

    /// One request to both. False: the answers or what the watches say differ, and it was printed.
    bool ask() {
        const auto kind = random_.below(100);
        if (kind < 2) return compare_watches(watch_or_not());
        if (kind < 3 && random_.chance(100)) {
            compact();
            return true;
        }
        return ask_for(kind % 12) && compare_watches("watches");
    }
    std::uint64_t heard() const { return heard_; }

private:
    /// A real watch that begins in the past waits for the server's next round, and a compaction
    /// before it ends the watch. One more watch, which hears of the last revision, ends the wait
    /// of all before it.
    void compact() {
        const auto now = simulated_.store().revision;
        if (now <= std::max<std::int64_t>(simulated_.store().compacted, 1)) return;
        rpc::WatchRequest r;
        auto& last = *r.mutable_create_request();
        last.set_key(std::string(1, '\0'));
        last.set_range_end(std::string(1, '\0'));
        last.set_start_revision(now);
        const Call watch = real_.start({watch_path, r.SerializeAsString(), true});
        for (int i = 0; i < 2; ++i)  // it has begun; the event
            if (!real_.next(watch)) throw std::runtime_error("etcd does not say its last event");
        real_.cancel(watch);
        server_.compact();
        simulated_.store().compact(now);
    }
    bool ask_for(std::uint64_t kind) {
        if (kind == 0) {
            rpc::LeaseGrantRequest r;
            r.set_ttl(random_.chance(500) ? 600 : 3600);
            requests_.granted();
            return compare(grant_path, r, r);
        }
        if (kind == 1) return compare_lease<rpc::LeaseRevokeRequest>(revoke_path);
        if (kind == 2)
            return random_.chance(500) ? compare_lease<rpc::LeaseKeepAliveRequest>(keep_path)
                                       : compare_lease<rpc::LeaseTimeToLiveRequest>(time_path);
        if (kind < 5) {
            const rpc::RangeRequest r = requests_.range();
            return compare(range_path, r, r);
        }
        rpc::TxnRequest r = requests_.transaction(), real = r;
        of_real_.give(real);
        of_simulated_.give(r);
        return compare(txn_path, real, r);
    }
    template <class Message>
    bool compare_lease(const std::string& path) {
        const auto name = requests_.lease();
        Message real, simulated;
        real.set_id(of_real_.number(name));
        simulated.set_id(of_simulated_.number(name));
        return compare(path, real, simulated);
    }

    template <class Message>
    bool compare(const std::string& path, const Message& to_real, const Message& to_simulated) {
        const std::string real = to_real.SerializeAsString(),
                          simulated = to_simulated.SerializeAsString();
        GrpcAnswer a, b;
        if (path == keep_path) {
            real_.send(real_keeps_, real);
            simulated_.send(keeps_, simulated);
            a.messages.push_back(real_.next(real_keeps_).value_or("no answer"));
            b.messages.push_back(simulated_.next(keeps_));
        } else {
            a = real_.ask(path, real);
            b = simulated_.finish(simulated_.start({path, simulated}));
        }
        for (std::string& m : a.messages)
            m = of_real_.taken(path, m);
        for (std::string& m : b.messages)
            m = of_simulated_.taken(path, m);
        if (a == b) return true;
        std::printf("%s %s\n  simulated: %s\n  real:      %s\n", path.c_str(),
                    lab::protobuf_text(simulated).c_str(), shown(b).c_str(), shown(a).c_str());
        return false;
    }
    static std::string shown(const GrpcAnswer& a) {
        std::string out = std::to_string(a.status) + " " + a.text;
        for (const std::string& m : a.messages)
            out += " " + lab::protobuf_text(m);
        return out;
    }

    /// Begins a watch, or ends one.
    std::string watch_or_not() {
        rpc::WatchRequest r;
        if (open_.size() < 4 || random_.chance(500)) {
            auto& wanted = *r.mutable_create_request();
            requests_.span(wanted);
            const auto now = static_cast<std::uint64_t>(simulated_.store().revision);
            if (random_.chance(700))
                wanted.set_start_revision(static_cast<std::int64_t>(1 + random_.below(now + 3)));
            if (wanted.range_end().empty() || wanted.range_end() > wanted.key())
                open_.insert(begun_++);
        } else {
            const auto which =
                std::next(open_.begin(), static_cast<long>(random_.below(open_.size() + 1)));
            // One that was never begun: etcd still answers for one that it has ended itself.
            const auto unknown = begun_ + 1000;
            r.mutable_cancel_request()->set_watch_id(which == open_.end() ? unknown : *which);
            if (which != open_.end()) open_.erase(which);
        }
        real_.send(real_watches_, r.SerializeAsString());
        simulated_.send(watches_, r.SerializeAsString());
        return lab::protobuf_text(r.SerializeAsString());
    }

    bool compare_watches(const std::string& what) {
        Heard simulated, real;
        std::size_t wanted = 0, there = 0;
        for (const std::string& m : simulated_.rest(watches_))
            wanted += hear(of_simulated_.taken(watch_path, m), simulated);
        while (there < wanted) {
            const auto m = real_.next(real_watches_);
            if (!m) break;
            there += hear(of_real_.taken(watch_path, *m), real);
        }
        heard_ += there;
        if (simulated == real) return true;
        std::printf("%s\n  simulated:\n%s  real:\n%s", what.c_str(), shown(simulated).c_str(),
                    shown(real).c_str());
        return false;
    }
    /// Events come one by one or together.
    std::size_t hear(const std::string& bytes, Heard& to) {
        rpc::WatchResponse m;
        if (!m.ParseFromString(bytes)) throw std::runtime_error("no news of a watch");
        auto& all = to[m.watch_id()];
        for (const rpc::Event& e : m.events())
            all.push_back(e.SerializeAsString());
        const auto count = static_cast<std::size_t>(m.events_size());
        if (m.canceled()) open_.erase(m.watch_id());
        if (count != 0) return count;
        all.push_back(bytes);
        return 1;
    }
    static std::string shown(const Heard& all) {
        std::string out;
        for (const auto& [id, texts] : all)
            for (const std::string& text : texts)
                out += "    " + std::to_string(id) + ": " + lab::protobuf_text(text) + "\n";
        return out;
    }

    const lab::EtcdServers& server_;
    Random random_;
    EtcdRequests requests_;
    lab::GrpcConnection real_;
    Simulated simulated_;
    const Call real_keeps_, keeps_, real_watches_, watches_;
    Side of_real_, of_simulated_;
    std::set<std::int64_t> open_;
    std::int64_t begun_ = 0;
    std::uint64_t heard_ = 0;
};

}  // namespace

int compare_etcd(std::uint64_t seed, std::uint64_t count) {
    const auto server = lab::EtcdServers::start({});
    Pair pair(server, seed);
    std::uint64_t differ = 0;
    for (std::uint64_t i = 0; i < count && differ < 10; ++i)
        differ += pair.ask() ? 0 : 1;
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("etcd: seed %llu, %llu requests, %llu messages of watches, %llu differ\n",
                number(seed), number(count), number(pair.heard()), number(differ));
    const bool shown = pair.heard() >= count / 10;
    if (!shown) std::puts("too little was heard of watches to show anything");
    return differ == 0 && shown ? 0 : 1;
}

}  // namespace holdfast::sim
