// What makes each deployment.
#pragma once
#include <memory>
#include <string>

#include "world.hpp"

namespace holdfast::sim {

std::unique_ptr<Deployment> make_redis(Kernel&, const Options&);
std::unique_ptr<Deployment> make_redis_sentinel(Kernel&, const Options&);
std::unique_ptr<Deployment> make_redlock(Kernel&, const Options&);
/// The address of a server.
inline std::string host(std::size_t i) {
    return "10.0.0." + std::to_string(i + 1);
}

}  // namespace holdfast::sim
