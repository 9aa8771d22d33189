// The ZooKeeper client's own return codes as error codes, and what they mean for a caller.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::zookeeper {

/// What no return code of the client says.
enum class Error : int {
    unresolved = 1,   ///< no host name could be resolved
    unreachable = 2,  ///< no server took the connection
    no_answer = 3,    ///< connected, or asked, and nothing came back in time
    too_short = 5,    ///< the ttl, or the servers' sessions, are shorter than a proof takes
    used_up = 6,      ///< the line's numbers have come to their end
    no_ensemble = 7,  ///< there are several hosts, and one of them stands alone
};

/// Codes are the client's (negative: ZNONODE, ZCONNECTIONLOSS, ...) or those of Error.
const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;
/// Of a return code of the client; no error for ZOK.
error_code from_rc(int rc) noexcept;
/// The answer never came, so the server may or may not have acted.
bool unanswered(int rc) noexcept;

}  // namespace holdfast::zookeeper
