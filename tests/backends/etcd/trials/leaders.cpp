// usage: etcd_leaders [TRIALS]
//
// Why Holdfast keeps no holder's lease alive (docs/adr/0021-etcd.md): on three real members, two
// holders with the rule removed, and none with it, in the same schedules. Side by side, on two
// names: a holder as etcd's own clients are, which keeps its lease alive and counts its validity
// from the sending of a keep-alive that was answered; and Holdfast's. Somebody waits for each of
// them at the members that stay together. The exit code is 0 when each trial came out as claimed.
// In namespaces of its own, see CMakeLists.txt.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "holdfast/lab/etcd_server.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "net.hpp"

namespace {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::boot_clock;
using holdfast::testing::Net;

std::string hexadecimal(const std::string& number) {
    char text[17] = {};
    std::snprintf(text, sizeof text, "%llx", std::stoull(number));
    return text;
}

long long ms(boot_clock::duration d) {
    return std::chrono::duration_cast<hf::milliseconds>(d).count();
}

/// A holder with the rule removed.
class KeptAlive {
public:
    KeptAlive(const lab::EtcdServers& servers, std::size_t member, const std::string& name,
              std::chrono::seconds ttl, hf::milliseconds period)
        : servers_(servers), member_(member), period_(period) {
        const auto base = boot_clock::now();
        id_ = lab::EtcdServers::text_after(
            servers.post(member, "lease/grant",
                         R"({"TTL":")" + std::to_string(ttl.count()) + "\"}"),
            "ID");
        if (id_.empty()) throw lab::LabError("no lease was granted");
        servers.ctl(
            {"put", "/holdfast/" + name + "/" + hexadecimal(id_), "", "--lease", hexadecimal(id_)});
        until_ = (base + ttl).time_since_epoch().count();
        thread_ = std::thread([this] { keep(); });
    }
    ~KeptAlive() {
        {
            const std::lock_guard hold(mutex_);
            stop_ = true;
        }
        stopping_.notify_all();
        thread_.join();
    }
    KeptAlive(const KeptAlive&) = delete;
    KeptAlive& operator=(const KeptAlive&) = delete;

    /// Until when it believes, as things stand.
    boot_clock::time_point until() const {
        return boot_clock::time_point(boot_clock::duration(until_.load()));
    }
    /// Keep-alives that were answered.
    unsigned answered() const { return answered_; }

private:
    void keep() {
        std::unique_lock hold(mutex_);
        while (!stopping_.wait_for(hold, period_, [this] { return stop_; })) {
            hold.unlock();
            const auto base = boot_clock::now();
            const auto answer =
                servers_.post(member_, "lease/keepalive", R"({"ID":")" + id_ + "\"}");
            const auto left = lab::EtcdServers::text_after(answer, "TTL");
            if (!left.empty()) {
                until_ = (base + std::chrono::seconds(std::stoi(left))).time_since_epoch().count();
                ++answered_;
            } else if (!lab::EtcdServers::text_after(answer, "ID").empty()) {
                until_ = base.time_since_epoch().count();  // it has heard that the lease is gone
            }
            hold.lock();
        }
    }

    const lab::EtcdServers& servers_;
    const std::size_t member_;
    const hf::milliseconds period_;
    std::string id_;
    std::atomic<boot_clock::rep> until_{0};
    std::atomic<unsigned> answered_{0};
    std::mutex mutex_;
    std::condition_variable stopping_;
    bool stop_ = false;
    std::thread thread_;
};

/// Somebody who waits for a lock, and when granted looks until when its holder still believes.
class Next {
public:
    template <class Until>
    Next(const hf::Client& client, const std::string& name, Until until) {
        client.make_lock(name).value()->async_acquire(
            {.wait = 120s}, [self = self_, until](hf::error_code ec, hf::Lease lease) {
                const std::lock_guard hold(self->mutex);
                if (ec || self->over) return;
                self->beside = ms(until() - boot_clock::now());
                self->lease = std::move(lease);
            });
        lab::wait_until(
            [&] {
                // Just after an election it may not be answered.
                const auto seen = client.inspect(name);
                return seen && seen->waiters.size() == 1;
            },
            20s, "somebody waits");
    }
    ~Next() {
        const std::lock_guard hold(self_->mutex);
        self_->over = true;
    }
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;

    bool granted() const {
        const std::lock_guard hold(self_->mutex);
        return self_->beside.has_value();
    }
    /// For how many ms longer the holder believes, when it hears nothing; negative: for how long it
    /// has not believed any more. Nothing: this one still waits.
    std::optional<long long> compatible_prefix() const {
        const std::lock_guard hold(self_->mutex);
        return self_->beside;
    }

private:
    /// Outlives this object: a wait that ends after it touches nothing else.
    struct State {
        std::mutex mutex;
        bool over = false;
        hf::Lease lease;
        std::optional<long long> beside;
    };
    std::shared_ptr<State> self_ = std::make_shared<State>();
};

/// What one trial showed of both holders.
struct Seen {
    bool effective = false;                         ///< the schedule had the effect that it needs
    std::optional<long long> kept_alive, holdfast;  ///< Next::compatible_prefix()
    bool two() const { return kept_alive && *kept_alive > 0; }
    bool two_of_holdfast() const { return holdfast && *holdfast > 0; }
};

struct Cluster {
    lab::EtcdServers servers;
    std::size_t leader, other;  ///< who leads at first, and one who stays with the majority
};

Cluster start() {
    lab::EtcdOptions options{.count = Net::size};
    for (std::size_t i = 0; i < Net::size; ++i) {
        options.hosts.push_back(Net::host(i));
        options.launchers.push_back(Net::launcher(i));
    }
    auto servers = lab::EtcdServers::start(std::move(options));
    std::optional<std::size_t> leader;
    lab::wait_until([&] { return (leader = servers.leader()).has_value(); }, 10s, "a leader");
    return {std::move(servers), *leader, (*leader + 1) % Net::size};
}

hf::Client open(const Cluster& c, std::size_t member, std::chrono::seconds ttl) {
    return hf::Client::open(c.servers.url(member) + "?ttl=" + std::to_string(ttl.count()) + "s")
        .value();
}

/// Waits until `when`: what has to be over by then has no other sign.
void until(boot_clock::time_point when) {
    lab::wait_until([&] { return boot_clock::now() >= when; }, 60s, "the time to come");
}

void successor(const Cluster& c) {
    lab::wait_until(
        [&] {
            const auto leads = c.servers.leader();
            return leads && *leads != c.leader;
        },
        20s, "a successor");
}

/// The leader is cut off from the others and stopped; when they have another leader it goes on, and
/// for a while does not know. Its clients reach it all the time.
Seen answers_from_memory() {
    constexpr auto ttl = 10s;
    auto c = start();
    const auto at_leader = open(c, c.leader, ttl), at_others = open(c, c.other, ttl);
    // Often: a leader that knows nothing of its successor goes on for a second or two.
    KeptAlive bare(c.servers, c.leader, "bare", ttl, 500ms);
    auto lease = at_leader.make_lock("ruled").value()->acquire({.wait = 10s}).value();
    Next after_bare(at_others, "bare", [&] { return bare.until(); });
    Next after_ruled(at_others, "ruled", [&] { return lease.valid_until(); });
    lab::wait_until([&] { return bare.answered() > 0; }, 5s, "a keep-alive");

    const auto cut = boot_clock::now();
    Net::isolate(c.leader, false);
    c.servers.pause(c.leader);
    successor(c);
    // The later it goes on, the longer it is believed, but it answers for no lease that is over.
    until(cut + ttl - 2s);
    const auto before = bare.answered();
    c.servers.resume(c.leader);
    Seen seen;
    seen.effective = lab::reached([&] { return bare.answered() > before; }, 3s);
    lab::wait_until([&] { return after_bare.granted() && after_ruled.granted(); }, 60s,
                    "both locks are granted to somebody else");
    Net::heal();
    seen.kept_alive = after_bare.compatible_prefix();
    seen.holdfast = after_ruled.compatible_prefix();
    return seen;
}

/// The leader is cut off from the others and stopped, for longer than a lease lasts. It goes on,
/// finds that leases are over, and later hears from the others again. Meanwhile the lease is kept
/// alive at its successor, without a gap.
Seen revokes_as_a_former_leader() {
    constexpr auto ttl = 6s;
    auto c = start();
    const auto holders = open(c, c.other, ttl), others = open(c, c.other, ttl);
    // A former leader revokes sixteen at a time, in the order of their ends as it knows them, and
    // the first ones are lost with its term: these.
    for (int i = 0; i < 16; ++i)
        c.servers.post(c.other, "lease/grant",
                       R"({"TTL":")" + std::to_string(std::chrono::seconds(ttl).count()) + "\"}");
    KeptAlive bare(c.servers, c.other, "bare", ttl, ttl / 3);  // as etcd's own clients do
    auto lease = holders.make_lock("ruled").value()->acquire({.wait = 10s}).value();

    const auto cut = boot_clock::now();
    Net::isolate(c.leader, false);
    c.servers.pause(c.leader);
    successor(c);
    // Their leases are of the successor: the former leader does not know them.
    Next after_bare(others, "bare", [&] { return bare.until(); });
    Next after_ruled(others, "ruled", [&] { return lease.valid_until(); });
    until(cut + ttl + 1s);
    const auto kept = [&, before = bare.answered()] { return bare.answered() > before; };
    Seen seen;
    seen.effective = lab::reached(kept, ttl) && lease.valid();
    // What it sends as a leader is lost, and ends after seven seconds; then it sends the rest. That
    // shall be between two keep-alives: the later one is answered that the lease is gone.
    c.servers.resume(c.leader);
    const auto leads_nobody = [&] {
        const auto status = c.servers.post(c.leader, "maintenance/status", "{}");
        return !status.empty() && lab::EtcdServers::text_after(status, "leader").empty();
    };
    lab::wait_until(leads_nobody, 10s, "the former leader knows that it is none");
    Net::heal();
    (void)lab::reached([&] { return after_bare.granted(); }, 20s);
    seen.kept_alive = after_bare.compatible_prefix();
    seen.holdfast = after_ruled.compatible_prefix();
    return seen;
}

std::string shown(const std::optional<long long>& beside) {
    if (!beside) return "one holder, all the time";
    return *beside > 0 ? "two holders, for up to " + std::to_string(*beside) + " ms"
                       : "one holder, none for " + std::to_string(-*beside) + " ms";
}

bool run(const char* what, int trials, Seen (*trial)()) {
    int two = 0, ours = 0, done = 0;
    // A schedule without its effect shows nothing: then once more.
    for (int tries = 0; done < trials && tries < 2 * trials; ++tries) {
        const Seen seen = trial();
        std::cout << what << ": ";
        if (!seen.effective && !seen.two_of_holdfast()) {
            std::cout << "void, it had no effect\n" << std::flush;
            continue;
        }
        ++done;
        two += seen.two() ? 1 : 0;
        ours += seen.two_of_holdfast() ? 1 : 0;
        std::cout << "kept alive: " << shown(seen.kept_alive)
                  << "; Holdfast: " << shown(seen.holdfast) << "\n"
                  << std::flush;
    }
    std::cout << what << ": two holders in " << two << " of " << done
              << " with a lease kept alive, in " << ours << " of " << done << " with Holdfast's\n"
              << std::flush;
    return done == trials && two == trials && ours == 0;
}

}  // namespace

int main(int argc, char** argv) try {
    const int trials = argc > 1 ? std::atoi(argv[1]) : 5;
    if (trials < 1) return 64;
    const Net net;
    std::cout << "etcd " << start().servers.version() << ", three members\n";
    const bool answers =
        run("a leader that answers when it is none any more", trials, answers_from_memory);
    const bool revokes =
        run("a leader that revokes when it is none any more", trials, revokes_as_a_former_leader);
    return answers && revokes ? 0 : 1;
} catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
