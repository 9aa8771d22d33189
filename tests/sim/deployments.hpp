// What makes each deployment.
#pragma once
#include <memory>
#include <string>

#include "world.hpp"

namespace holdfast::sim {

std::unique_ptr<Deployment> make_redis(Kernel&, const Options&);
std::unique_ptr<Deployment> make_redis_sentinel(Kernel&, const Options&);
std::unique_ptr<Deployment> make_redis_cluster(Kernel&, const Options&);
std::unique_ptr<Deployment> make_redlock(Kernel&, const Options&);

}  // namespace holdfast::sim
