// Error codes for etcd's failures, and their conditions.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::etcd {

enum class Error : int {
    unresolved = 1,  ///< no host name could be resolved
    unreachable,     ///< no member took the connection
    no_answer,       ///< no answer in time
    closed,          ///< the connection broke
    protocol,        ///< not an answer of etcd's
    no_leader,       ///< the members have no leader, or no majority is reachable
    learner,         ///< the member is not a voter yet, and serves no requests
    no_lease,        ///< the lease is gone
    no_space,        ///< the alarm NOSPACE: only deletions are accepted; the request that raises it
                     ///< may have been executed, and is not any more
    overloaded,      ///< too many requests
    denied,          ///< no permission, or no user was given
    tls,             ///< no TLS session: certificate, host name, protocol
    token,           ///< no user was given, or its token is no longer accepted
    no_users,        ///< authentication is not enabled
    too_old,         ///< it does not know the request
    no_grpc,         ///< the host speaks something else, and has not understood the request
    refused,         ///< any other error of the server that refuses the request
    other_kind,      ///< the key at the name itself belongs to another kind of lock, or to none
    other_cluster,   ///< the hosts of the URL belong to different clusters
    failed,          ///< an error that does not say whether the request was executed
};

const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;
/// The code for an error answer: gRPC's status and the server's text.
error_code from_status(int status, std::string_view text) noexcept;
/// True if the server has surely not executed the request.
bool nothing_done(const error_code&) noexcept;

}  // namespace holdfast::etcd
