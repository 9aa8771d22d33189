// A deployment reached through proxies, one in front of each server, so that one client's network
// can be cut while everybody else's is whole.
#pragma once
#include <holdfast/lab/proxy.hpp>
#include <vector>

#include "site.hpp"

namespace holdfast::bench {

struct Through {
    /// A proxy for each address 127.0.0.1:PORT in the deployment's URL, but none where clients do
    /// not keep to it; `seed` is for what they do at random. Errors: LabError.
    explicit Through(Deployment whole, std::uint64_t seed = 1);

    Deployment deployment;  ///< the same through the proxies
    std::vector<lab::Proxy> proxies;
};

/// One client's network can be cut: it has one, and keeps to the addresses in its URL.
inline bool has_network(const Deployment& d) {
    return d.behind_proxies && d.backend != "sqlite";
}

}  // namespace holdfast::bench
