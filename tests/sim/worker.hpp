// What one thread of a client does: it takes locks in every way that the interface has, and holds
// each call to what its documentation promises.
#pragma once
#include <list>

#include "approach.hpp"
#include "history.hpp"
#include "holdfast/acquire_all.hpp"
#include "world.hpp"

namespace holdfast::sim {

std::string words(Nanos);

class Worker {
public:
    Worker(World& w, World::User& u) : world_(w), user_(u) {}
    void run();

private:
    /// How long it has run since then, without the time in which its machine stood still.
    struct Since {
        Nanos moment;
        Running runs;
    };
    /// Of an acquisition.
    struct Asked {
        std::vector<std::size_t> names;
        milliseconds wait;
        Since since;
    };
    void cycle();
    milliseconds random_wait();
    AcquireOptions random_options(std::size_t name);
    static Approach approach_of(Lock&);
    Lock& lock_of(std::size_t name);
    std::uint32_t limit_of(std::size_t name) const;
    /// `in_line`: it takes a place of its own, and keeps it until its end.
    Approach::Answer acquire(const Approach&, const AcquireOptions&, std::size_t name,
                             bool in_line = true);
    /// Makes a call that can be cancelled, and waits for its end.
    template <class Got, class Wait, class Start>
    std::pair<error_code, Got> call(bool blocking, Nanos cancel_after, Wait, Start);
    /// It has just learnt of this grant, asked for then. Not `fresh`: it may have it for long.
    void believe(Belief&, Nanos asked, bool fresh = true);
    /// `owner`: that of a Reentrant.
    void hold(std::list<Lease> handles, Belief&, World::Owner* owner);
    std::optional<Lease> share(const Lease&);
    void renew(Lease&, Belief&);
    void downgrade(Lease&, Belief&);
    std::optional<Inspection> look(const Name&);
    void check_order(const Inspection& before, Nanos asked, const Lease&, const Name&);
    /// One handle; of the last one its grant.
    void release(Lease&, Belief&, World::Owner*);
    void let_go(Lease&, Belief&, World::Owner*);
    void release_one(std::list<Lease>&, Belief&, World::Owner*);
    template <class Held>
    ReleaseResult ask_release(Held&, Outcome);
    /// Nobody of this client has the grant from now on.
    void leave(Belief&, Outcome, bool valid);
    /// The server has perhaps not heard of it.
    void owe(const Belief&);

    // --- all of several locks (sets.cpp)
    /// What is asked for, and of each part its name and, if it is a semaphore, the limit.
    struct Parts {
        std::vector<Part> parts;
        std::vector<std::size_t> names;
        std::vector<std::uint32_t> limits;
    };
    struct SetEars;
    void gather();
    Parts random_parts();
    std::pair<error_code, LeaseSet> acquire_set(const Parts&, const Since&);
    void hold_set(LeaseSet, const Parts&, Nanos asked);
    void check_set(const LeaseSet&, const std::list<Belief>&);
    void check_told(const SetEars&, const std::list<Belief>&, const LeaseSet&);
    void release_set(LeaseSet, std::list<Belief>&);

    // --- locks that an owner may acquire again (owners.cpp)
    void own(std::size_t name);
    /// Whoever calls it counts it down in `asking` when the handle is known.
    Approach::Answer acquire_as(World::Owner&, const AcquireOptions&);
    /// The grant that this handle is of.
    std::shared_ptr<Belief> join(World::Owner&, const Lease&);
    /// Acquires once more what it holds.
    std::optional<Lease> again(World::Owner&, const Belief&);
    /// It has no handle any more. True: a call under way may have got one.
    bool left(World::Owner&);

    // --- elections (elections.cpp)
    void elect(std::size_t name);
    void campaign(std::size_t name);
    void observe(std::size_t name);
    void judge_look(error_code, bool waits);
    void check_leader(const std::optional<Leader>&, std::size_t name, Nanos since);
    bool may_lead_on(Nanos since) const;

    /// What an operator does: breaks leases of a name, or asks for their release.
    void operate();
    void break_lock(Order, const BreakOptions&);
    void ask(Order, const HolderFilter&);
    template <class F>
    auto give(Order&, const std::string& what, bool by_token, F);
    void judge_order(error_code, const std::string& what, bool by_token);
    void judge(const Asked&, error_code, bool cancelled);
    Since begin() const;
    void took(const Since&, Nanos bound, const std::string& what);
    void trace(const std::string& what);
    Random& random() { return world_.kernel.random(); }

    World& world_;
    World::User& user_;
};

}  // namespace holdfast::sim
