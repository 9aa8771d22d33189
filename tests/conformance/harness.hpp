// What the suite needs of a backend: where it is, and how to break it. One Harness serves the whole
// program; which one is chosen by HOLDFAST_TEST_BACKEND.
#pragma once
#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/etcd_server.hpp"
#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/zookeeper_server.hpp"

namespace suite {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;

/// One Redis server; or all nodes of a Redlock, or all primaries of a cluster, as one: what is done
/// is done to each of them.
class RedisNodes {
public:
    explicit RedisNodes(std::vector<lab::RedisServer*> nodes) : nodes_(std::move(nodes)) {}
    /// The first one's answer, of those that do not say that another server has the key.
    lab::Reply cli(const std::vector<std::string>& arguments) {
        std::optional<lab::Reply> answer;
        for (auto* node : nodes_) {
            auto said = node->cli(arguments);
            if (!answer || is_elsewhere(*answer)) answer = std::move(said);
        }
        return *answer;
    }
    void kill() {
        for (auto* node : nodes_)
            node->kill();
    }
    void restart(lab::Data data) {
        for (auto* node : nodes_)
            node->restart(data);
    }
    void pause() {
        for (auto* node : nodes_)
            node->pause();
    }
    void resume() {
        for (auto* node : nodes_)
            node->resume();
    }
    bool alive() { return nodes_.front()->alive(); }
    /// At each of them that has the name it is the list that a stranger made of it.
    bool is_stranger(const std::string& name) {
        bool there = false;
        for (auto* node : nodes_) {
            const auto found = node->cli({"LRANGE", name, "0", "-1"});
            if (is_elsewhere(found)) continue;
            if (found.elements.size() != 1 || found.elements[0].text != "not a lock") return false;
            there = true;
        }
        return there;
    }

private:
    static bool is_elsewhere(const lab::Reply& reply) {
        return reply.is_error() && reply.text.starts_with("MOVED ");
    }
    std::vector<lab::RedisServer*> nodes_;
};

/// The fault proxy of each server as one: a fault is installed at all of them.
class Proxies {
public:
    /// Which of several servers a request goes to.
    enum class Asked {
        all,  ///< each of them: what a majority answers counts
        one   ///< the one that has the name
    };
    explicit Proxies(std::vector<lab::Proxy*> proxies, Asked asked = Asked::all)
        : all_(std::move(proxies)), asked_(asked) {}
    void record() {
        each([](lab::Proxy& p) { p.record(); });
    }
    /// Where all are asked, what a majority of them has recorded at least: who has that many
    /// answers waits for no more. Else what each has, one after the other.
    std::string recorded(lab::Direction d) const {
        std::vector<std::string> each;
        for (const auto* p : all_)
            each.push_back(p->recorded(d));
        if (asked_ == Asked::one) return std::accumulate(each.begin(), each.end(), std::string());
        std::sort(each.begin(), each.end(),
                  [](const auto& a, const auto& b) { return a.size() < b.size(); });
        return each[(each.size() - 1) / 2];
    }
    void cut_after(lab::Direction d, std::uint64_t bytes) {
        each([&](lab::Proxy& p) { p.cut_after(d, bytes); });
    }
    void reset_after(lab::Direction d, std::uint64_t bytes) {
        each([&](lab::Proxy& p) { p.reset_after(d, bytes); });
    }
    void delay(lab::Direction d, std::chrono::milliseconds time) {
        each([&](lab::Proxy& p) { p.delay(d, time); });
    }
    void swallow(lab::Direction d) {
        each([&](lab::Proxy& p) { p.swallow(d); });
    }
    void black_hole() {
        each([](lab::Proxy& p) { p.black_hole(); });
    }
    void refuse() {
        each([](lab::Proxy& p) { p.refuse(); });
    }
    void cut_all() {
        each([](lab::Proxy& p) { p.cut_all(); });
    }
    void heal() {
        each([](lab::Proxy& p) { p.heal(); });
    }
    /// As many of them as a request needs did what they were told.
    bool fired() const {
        std::size_t n = 0;
        for (const auto* p : all_)
            n += p->fired() ? 1 : 0;
        return n > (asked_ == Asked::all ? all_.size() / 2 : 0);
    }
    /// Of all of them together.
    lab::ProxyCounters counters() const {
        lab::ProxyCounters sum;
        for (const auto* p : all_)
            sum += p->counters();
        return sum;
    }

private:
    template <class F>
    void each(F f) {
        for (auto* p : all_)
            f(*p);
    }
    std::vector<lab::Proxy*> all_;
    Asked asked_;
};

class Harness {
public:
    virtual ~Harness() = default;
    /// The one under test. Throws when HOLDFAST_TEST_BACKEND names none.
    static Harness& instance();
    static std::vector<std::string> names();

    const std::string& name() const noexcept { return name_; }
    /// Straight to the server; `query` is appended ("ttl=1s&namespace=x").
    std::string url(const std::string& query = {}) const { return join(base_url(), query); }
    /// Through the fault proxy. Only where proxy() is not null.
    std::string proxied_url(const std::string& query = {}) const {
        return join(proxied_base_url(), query);
    }
    virtual Proxies* proxy() { return nullptr; }
    /// What a client without Holdfast tells the server, or all of them, where it is Redis.
    virtual RedisNodes* foreign_client() { return nullptr; }
    /// The server, or all of them, can be killed and restarted by the next two. With sessions that
    /// is a subject of its own, in zookeeper.cpp.
    virtual bool restartable() const { return false; }
    /// Kills the server process, or all of them. False where there is none.
    virtual bool kill_server() { return false; }
    /// Starts it again, ending it first where it runs. False where there is none.
    virtual bool restart_server(lab::Data) { return false; }
    /// A server may answer a reader from what it has heard so far.
    virtual bool reads_lag() const { return false; }
    /// A lease is renewed with its session, and not by its name.
    virtual bool renews_sessions() const { return false; }
    /// Options for another kind of lock that shares the name; empty where there is none.
    virtual std::string other_mode() const { return {}; }
    /// Stops the server process, or all of them, as it is (SIGSTOP); a file has its write lock
    /// taken. False where there is neither.
    virtual bool pause_server() { return false; }
    /// Lets it go on.
    virtual bool resume_server() { return false; }
    /// Servers that were away may have to agree first which of them leads: returns when they
    /// answer.
    virtual void wait_ready() {}
    virtual lab::ZooKeeperServers* zookeeper() { return nullptr; }
    /// Grants and tokens outlive a killed server as this harness runs it.
    virtual bool durable() const { return false; }
    /// Other processes can reach the same locks.
    virtual bool shared_between_processes() const { return true; }
    /// The slot of a name says which server has its keys: a name whose keys would be in two slots
    /// is refused, and no server with slots becomes a replica.
    virtual bool in_slots() const { return false; }
    /// Puts something under the name that is not a lock. False where there is no such thing.
    virtual bool plant_stranger(const std::string&) { return false; }
    /// It is as it was put there.
    virtual bool stranger_is_whole(const std::string&) { return false; }
    /// How many waiters have a place in line for this name, of those with this note, or of all;
    /// for a backend whose waiters get one, but are not shown.
    virtual std::optional<std::size_t> unseen_waiters(const std::string& /*name*/,
                                                      const std::string& /*note*/ = {}) {
        return std::nullopt;
    }
    /// Options with which an answer that comes 800 ms late is waited for.
    virtual std::string waits_for_late_answers() const { return "request_timeout=8s"; }
    /// So many bytes of an exchange, each way, are a question of the server's and its answer, which
    /// come at a moment of their own.
    virtual std::size_t asked_between() const { return 0; }
    /// One request of an engine's attempt takes a lock that is free; one more takes it later.
    virtual bool grants_by_one_request() const { return false; }
    /// A request that close() cuts has been taken back when it returns, whatever its answer.
    virtual bool close_takes_back() const { return false; }
    /// Removes all traces of the name behind the library's back, as an operator or a crash might,
    /// the token's memory included where that is possible.
    virtual bool erase_behind(const std::string&) { return false; }

protected:
    explicit Harness(std::string name) : name_(std::move(name)) {}
    virtual std::string base_url() const = 0;
    virtual std::string proxied_base_url() const { return base_url(); }

private:
    static std::string join(std::string url, const std::string& query);
    std::string name_;
};

}  // namespace suite
