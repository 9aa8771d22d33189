// One server, or several that elect a leader among them, and the faults that any of these has.
#pragma once
#include <utility>
#include <vector>

#include "deployment.hpp"

namespace holdfast::deployments {

/// One server, or several that elect a leader among them.
template <class Servers>
class Electing : public Deployment {
public:
    explicit Electing(Servers servers) : servers_(std::move(servers)) {}
    std::vector<std::uint16_t> ports() const override {
        std::vector<std::uint16_t> out;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            out.push_back(servers_.port(i));
        return out;
    }
    std::vector<ServerFault> faults() override {
        std::vector<ServerFault> out{
            {"server killed, restarted with its data",
             [this](Random& r, const Wait& wait) {
                 const auto one = any(r);
                 kill([&] { servers_.kill(one); });
                 wait(outage(r));
                 servers_.restart(one, lab::Data::keep);
             }},
            {"server stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                 const auto one = any(r);
                 servers_.pause(one);
                 wait(outage(r));
                 servers_.resume(one);
             }}};
        if (servers_.size() == 1) return out;
        out.push_back(
            {"leader killed, restarted with its data", [this](Random& r, const Wait& wait) {
                 std::size_t leader = 0;
                 kill([&] { leader = servers_.kill_leader(); });
                 wait(outage(r));
                 servers_.restart(leader, lab::Data::keep);
             }});
        out.push_back({"leader stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                           const auto leader = servers_.leader();
                           if (!leader) return;
                           servers_.pause(*leader);
                           wait(outage(r));
                           servers_.resume(*leader);
                       }});
        return out;
    }
    void wipe() override { servers_.restart_all(lab::Data::fresh); }
    void wait_ready() override { servers_.wait_ready(); }

protected:
    std::size_t any(Random& r) const {
        return std::uniform_int_distribution<std::size_t>(0, servers_.size() - 1)(r);
    }
    Servers servers_;
};

}  // namespace holdfast::deployments
