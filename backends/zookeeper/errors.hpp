// Error codes for the ZooKeeper client's return codes, and their conditions.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::zookeeper {

/// Errors that the client has no return code for.
enum class Error : int {
    unresolved = 1,    ///< no host name could be resolved
    unreachable = 2,   ///< no server took the connection
    no_answer = 3,     ///< connected or asked, and nothing came back in time
    too_short = 5,     ///< the ttl or the servers' sessions are too short to be kept proved
    used_up = 6,       ///< the sequence numbers of the line are used up
    no_ensemble = 7,   ///< several hosts are configured, and one of them stands alone
    node_gone = 8,     ///< a holder's node was deleted
    session_over = 9,  ///< the servers have ended a holder's session
};

/// Codes are the client's (negative: ZNONODE, ZCONNECTIONLOSS, ...) or those of Error.
const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;
/// The code of one of the client's return codes; no error for ZOK.
error_code from_rc(int rc) noexcept;
/// True when the answer never came, so the server may have acted.
bool unanswered(int rc) noexcept;

}  // namespace holdfast::zookeeper
