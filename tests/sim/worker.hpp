// What one thread of a client does: it takes locks in every way that the interface has, and holds
// each call to what its documentation promises.
#pragma once
#include "history.hpp"
#include "world.hpp"

namespace holdfast::sim {

class Worker {
public:
    Worker(World& w, World::User& u) : world_(w), user_(u) {}
    void run();

private:
    struct Call;
    void cycle();
    std::pair<error_code, Lease> acquire(Lock&, const AcquireOptions&, std::size_t name);
    std::pair<error_code, Lease> acquire_async(Lock&, const AcquireOptions&, Nanos cancel_after);
    void hold(Lease, Belief&);
    std::optional<Lease> share(const Lease&);
    void renew(Lease&, const Belief&);
    std::optional<Inspection> look(const Name&);
    void check_order(const Inspection& before, Nanos asked, const Lease&, const Name&);
    void release(Lease, Belief&);
    /// What an operator does: breaks leases of a name, or asks for their release.
    void operate();
    void break_lock(Order, const BreakOptions&);
    void ask(Order, const HolderFilter&);
    template <class F>
    auto give(Order&, const std::string& what, bool by_token, F);
    void judge_order(error_code, const std::string& what, bool by_token);
    void judge(error_code, const AcquireOptions&, std::size_t name, Nanos asked, bool cancelled);
    /// How long it has run since then, without the time in which its machine stood still.
    struct Since {
        Nanos moment, frozen;
    };
    Since begin() const;
    void took(const Since&, Nanos bound, const std::string& what);
    void trace(const std::string& what);
    Random& random() { return world_.kernel.random(); }

    World& world_;
    World::User& user_;
};

}  // namespace holdfast::sim
