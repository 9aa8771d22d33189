// One member of an etcd cluster as its clients see it: gRPC on each connection, watches that lag,
// and what it does of its own accord when it stops.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "etcd_store.hpp"
#include "network.hpp"

namespace holdfast::sim {

class EtcdCluster;

class EtcdMember final : public Server {
public:
    EtcdMember(EtcdCluster& c, Kernel& k, std::size_t number);
    ~EtcdMember() override;
    bool listens() const override { return up && !leaving; }
    void opened(const std::shared_ptr<Connection>&) override;
    void arrived(Connection&, std::string_view bytes) override;
    void closed(Connection&) override;

    bool up = true;
    bool leaving = false;  ///< it takes no new connections and no new calls
    Nanos isolated_until = 0;
    /// What it makes of shorter ones, in seconds, by the length of its elections. Only the leader's
    /// counts, and each member tells its own.
    std::int64_t shortest_lease = 2;

private:
    friend class EtcdCluster;
    struct Watch;
    struct Call;
    struct Session;
    using SessionPtr = std::shared_ptr<Session>;
    /// One message of a call.
    struct Asked {
        SessionPtr session;
        std::int32_t call;
        std::string path, message;
    };
    bool stands() const;
    void take(const SessionPtr&);
    void flush(Session&);
    void expire(const SessionPtr&, std::int32_t call);
    void serve(const Asked&);
    /// The call's next message, if there is one.
    void go_on(Session&, std::int32_t call);
    bool waits(const Asked&) const;
    void fail(const Asked&, int status, std::string_view why);
    void execute(const Asked&);
    std::string done(const Asked&);
    template <class Request, class Answer>
    std::string typed(const Asked&, Answer);
    rpc::LeaseGrantResponse grant(const rpc::LeaseGrantRequest&);
    rpc::LeaseKeepAliveResponse keep_alive(const rpc::LeaseKeepAliveRequest&);
    void tell_cluster(rpc::ResponseHeader&) const;
    void watch(const Asked&);
    void tell(Session&);
    rpc::WatchResponse news_of(std::int64_t watch, Watch&) const;
    void tell_later();
    void say_farewell();
    void drop_sessions();

    EtcdCluster& cluster_;
    Kernel& kernel_;
    const std::size_t number_;
    std::vector<SessionPtr> sessions_;
    bool telling_ = false;
    std::map<std::int64_t, Nanos> led_with_;  ///< what it knew of leases when it last led
};

}  // namespace holdfast::sim
