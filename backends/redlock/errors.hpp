// Error codes for what can go wrong among several nodes. Errors of one node keep their code of
// backends/redis.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::redlock {

enum class Error {
    no_quorum = 1,  ///< fewer than a majority of the nodes answered, or may vote
    too_slow,       ///< a majority granted, but after the end of the validity
    same_server,    ///< two of the configured nodes are one server
    other_nodes,    ///< a node is used with another set of nodes
    ttl_too_long,   ///< longer than the deployment's max_ttl
    sealed          ///< a state of another format
};

const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;

}  // namespace holdfast::redlock
