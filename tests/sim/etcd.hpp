// A cluster of etcd as its clients see it: a leader that ends leases by its own clock, elections,
// and members cut off from the others. What the members have in common is in etcd_store.hpp, and
// what one does for its clients in etcd_member.hpp.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "etcd_member.hpp"
#include "etcd_store.hpp"

namespace holdfast::sim {

class EtcdCluster {
public:
    EtcdCluster(Kernel&, std::size_t members);
    ~EtcdCluster();

    EtcdMember& server(std::size_t i) { return *members_[i]; }
    std::size_t size() const noexcept { return members_.size(); }

    Nanos slowest = 300 * ms;  ///< a member tells of a change

    // --- faults, of one member
    /// Down, then up again, with its data. Some say farewell, and answer who is there a while
    /// longer.
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
    void stop(std::size_t member);
    void tick();
    void changed();
    /// Of a lease, by the leader's clock.
    Nanos left(std::int64_t lease) const;
    void let_last(std::int64_t lease, std::int64_t seconds);
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

}  // namespace holdfast::sim
