// The members of an etcd cluster as clients see them: the v3 JSON gateway over HTTP, a leader that
// ends leases by its own clock, elections, members cut off from the others, and watches that lag.
// What they have in common is in etcd_store.hpp.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "etcd_store.hpp"
#include "network.hpp"

namespace holdfast::sim {

class EtcdMember;

class EtcdCluster {
public:
    EtcdCluster(Kernel&, std::size_t members);
    ~EtcdCluster();

    EtcdMember& server(std::size_t i) { return *members_[i]; }
    std::size_t size() const noexcept { return members_.size(); }

    Nanos slowest = 300 * ms;  ///< a member tells of a change

    // --- faults, of one member
    /// Down, then up again, with its data.
    void restart(std::size_t member, Nanos down);
    void pause(std::size_t member, Nanos until);
    /// The others and this one do not hear each other.
    void isolate(std::size_t member, Nanos until);
    /// The cluster begins anew: no promise survives it.
    void flush();
    /// All are up, and hear each other.
    void recover();

    const EtcdStore& store() const noexcept { return store_; }
    EtcdStore& store() noexcept { return store_; }
    /// How often a leader was missed.
    unsigned elections() const noexcept { return elections_; }
    /// When the leader ends this lease, in the time of the run; `never` without a leader, as the
    /// next one lets each last for its whole time.
    Nanos ends(std::int64_t lease) const;

private:
    friend class EtcdMember;
    struct Request {
        std::size_t member;
        std::function<void(bool)> what;  ///< false: it is answered with an error
        Nanos until;
        bool dropped = false;  ///< it is lost if the next leader does not know of it
    };
    /// As soon as there is a leader whom the member reaches.
    void propose(std::size_t member, std::function<void(bool)>);
    bool reaches_leader(std::size_t member) const;
    bool serves(std::size_t member) const;
    bool hears_others(std::size_t member) const;
    void elect_later();
    void elect();
    void go_on();
    void tick();
    void changed();
    /// A member that led before it stood still ends what has ended by its own records.
    void end_as_it_was_known(std::size_t member);

    Kernel& kernel_;
    EtcdStore store_;
    std::vector<std::unique_ptr<EtcdMember>> members_;
    std::map<std::int64_t, Nanos> ends_;  ///< of leases, by the leader's clock
    std::size_t leader_ = none;
    std::deque<Request> waiting_;
    unsigned elections_ = 0;
    static constexpr std::size_t none = ~std::size_t{0};
};

class EtcdMember final : public Server {
public:
    EtcdMember(EtcdCluster& c, Kernel& k, std::size_t number);
    bool listens() const override { return up; }
    void opened(const std::shared_ptr<Connection>&) override;
    void arrived(Connection&, std::string_view bytes) override;
    void closed(Connection&) override;
    const std::string& name() const override { return machine.name; }

    Process machine;
    bool up = true;
    Nanos isolated_until = 0;
    /// What it makes of shorter ones, in seconds, by the length of its elections. Only the leader's
    /// counts, and each member tells its own.
    std::int64_t shortest_lease = 2;

private:
    friend class EtcdCluster;
    struct Session {
        std::shared_ptr<Connection> connection;
        std::string in;
        bool busy = false;
        bool watches = false, ended = false;
        std::string begin, end;
        std::int64_t next = 0;  ///< revision that it is told next
    };
    void look_at(const std::shared_ptr<Session>&);
    void serve(const std::shared_ptr<Session>&, const std::string& path, const std::string& body);
    void answer(const std::shared_ptr<Session>&, unsigned status, const std::string& body);
    void execute(const std::shared_ptr<Session>&, const std::string& path,
                 const boost::json::object&);
    boost::json::object done(const std::string& path, const boost::json::object&);
    void watch(Session&, const boost::json::object&);
    void tell(Session&);
    void tell_later();
    void drop_sessions();

    EtcdCluster& cluster_;
    Kernel& kernel_;
    const std::size_t number_;
    std::vector<std::shared_ptr<Session>> sessions_;
    bool telling_ = false;
    std::map<std::int64_t, Nanos> led_with_;  ///< what it knew of leases when it last led
};

}  // namespace holdfast::sim
