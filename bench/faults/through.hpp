// A deployment reached through proxies, one in front of each server, so that one client's network
// can be cut while everybody else's is whole.
#pragma once
#include <holdfast/lab/proxy.hpp>
#include <vector>

#include "site.hpp"

namespace holdfast::bench {

struct Through {
    /// A proxy for each address 127.0.0.1:PORT in the deployment's URL; `seed` is for what they do
    /// at random. Errors: LabError.
    explicit Through(Deployment whole, std::uint64_t seed = 1);

    Deployment deployment;  ///< the same through the proxies
    std::vector<lab::Proxy> proxies;
};

}  // namespace holdfast::bench
