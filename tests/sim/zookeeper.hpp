// The servers of a ZooKeeper ensemble as clients see them: the wire protocol, sessions that the
// leader ends by its own clock, touches that come to it with the answers to its pings, followers
// that lag, elections, and servers that do not hear the others. Their nodes are in
// zookeeper_tree.hpp.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "network.hpp"
#include "zookeeper_tree.hpp"

namespace holdfast::sim {

class ZkServer;

class ZkEnsemble {
public:
    /// `tick` is the servers' tickTime, `sync_limit` for how many of them one may be without the
    /// leader, or without a majority.
    ZkEnsemble(Kernel&, std::size_t servers, Nanos tick, int sync_limit = 5);
    ~ZkEnsemble();

    ZkServer& server(std::size_t i) { return *servers_[i]; }
    std::size_t size() const noexcept { return servers_.size(); }

    // --- faults, of one server
    /// Down, then up again, with its data.
    void restart(std::size_t server, Nanos down);
    void stop(std::size_t server);
    void start(std::size_t server);
    void pause(std::size_t server, Nanos until);
    /// The others and this one do not hear each other.
    void isolate(std::size_t server, Nanos until);
    /// All begin anew: no promise survives it.
    void flush();
    /// All are up, and hear each other.
    void recover();

    /// Between the leader and another server, now and then.
    Nanos slowest;
    /// Of a thousand containers that are empty so many go at each half tick.
    unsigned dropped_containers = 10;

    std::optional<std::size_t> leader() const {
        return leader_ == none ? std::nullopt : std::optional(leader_);
    }
    /// Called for each change that is decided.
    std::function<void(const ZkChange&)> decided;
    /// What a majority has.
    const ZkTree& committed() const noexcept { return committed_; }
    /// When the leader ends this session, in the time of the run; `never` without a leader, as the
    /// next one lets each last for its whole time.
    Nanos ends(std::int64_t session) const;

private:
    friend class ZkServer;
    struct Transaction {
        std::int64_t zxid = 0;
        std::vector<ZkChange> changes;
        std::int64_t closes = 0;  ///< a session that ends with it
    };
    struct Session {
        Nanos timeout = 0;
        Nanos ends = 0;  ///< by the leader's clock
        std::size_t owner = 0;
    };
    bool serves(std::size_t) const;
    bool hears_others(std::size_t) const;
    bool has_majority() const;
    Nanos leader_clock() const;
    /// Over the connection between a server and the leader, which keeps the order. What is under
    /// way while either does not hear the others waits; it is lost when the connection ends.
    void to_leader(std::size_t server, std::function<void()>);
    void from_leader(std::size_t server, std::function<void()>);
    void put(std::size_t server, bool up, std::function<void()>);
    bool passable(std::size_t server) const;
    void pump();
    void cut_off(ZkServer&);
    void touch(std::int64_t session);
    /// At the leader, which numbers it; then every server gets it.
    void commit(std::vector<ZkChange>, std::int64_t closes = 0);
    void tick();
    void ping_others();
    void end_sessions();
    void end_session(std::int64_t);
    void drop_containers();
    void elect_later();
    void elect();
    void drop_lost();

    Kernel& kernel_;
    const Nanos tick_;
    const int sync_limit_;
    std::vector<std::unique_ptr<ZkServer>> servers_;
    ZkTree committed_;
    std::vector<Transaction> log_;
    std::map<std::int64_t, Session> sessions_;
    std::vector<std::function<void()>> limbo_;  ///< a leader without a majority was asked for it
    std::size_t leader_ = none;
    std::int64_t epoch_ = 1, counter_ = 0, last_session_ = 0x100;
    unsigned elections_ = 0;
    static constexpr std::size_t none = ~std::size_t{0};
};

class ZkServer final : public Server {
public:
    ZkServer(ZkEnsemble&, Kernel&, std::size_t number);
    bool listens() const override { return up; }
    void opened(const std::shared_ptr<Connection>&) override;
    void arrived(Connection&, std::string_view bytes) override;
    void closed(Connection&) override;

    bool up = true;
    Nanos isolated_until = 0;

private:
    friend class ZkEnsemble;
    struct Client {
        std::shared_ptr<Connection> connection;
        std::string in;
        bool busy = false, greeted = false, ended = false;
        std::int64_t session = 0;
        std::set<std::string> data_watches, child_watches;
    };
    using ClientPtr = std::shared_ptr<Client>;
    struct Request;
    using RequestPtr = std::shared_ptr<Request>;
    void look_at(const ClientPtr&);
    void serve(const ClientPtr&, const std::string& frame);
    void greet(const ClientPtr&, const std::string& frame);
    void welcome(const ClientPtr&, Nanos timeout);
    void read(const ClientPtr&, std::int32_t xid, std::int32_t type, const std::string& body);
    void write(const ClientPtr&, std::int32_t xid, std::int32_t type, const std::string& body);
    void execute(const ClientPtr&, const RequestPtr&);
    void refuse(const ClientPtr&, const RequestPtr&, ZkError, std::size_t at);
    void answer(const ClientPtr&, const RequestPtr&, ZkError, const std::string& words);
    void set_watches(const ClientPtr&, const std::string& body);
    void tell(const ClientPtr&, const std::string& path, std::int32_t type);
    void reply(const ClientPtr&, std::int32_t xid, ZkError, const std::string& body = {});
    void send(const ClientPtr&, const std::string& frame);
    void go_on(const ClientPtr&);
    /// Everything up to this transaction, one after the other.
    void apply_up_to(std::size_t index);
    void apply(const ZkEnsemble::Transaction&);
    void fire(const std::string& path, std::int32_t type, bool data, bool child);
    void hang_up(const ClientPtr&);
    void drop_clients();

    ZkEnsemble& ensemble_;
    Kernel& kernel_;
    const std::size_t number_;
    ZkTree tree_;
    std::size_t applied_ = 0;  ///< of the log
    std::int64_t zxid_ = 0;
    bool serving_ = true;
    Nanos heard_ = 0;  ///< of the leader, or as the leader of a majority
    struct Link {
        Nanos last = 0;
        std::deque<std::function<void()>> held;
    };
    Link up_, down_;           ///< to the leader, and from it
    unsigned generation_ = 0;  ///< of that connection
    std::vector<ClientPtr> clients_;
    std::set<std::int64_t> touched_;
};

}  // namespace holdfast::sim
