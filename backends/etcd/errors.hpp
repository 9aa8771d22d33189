// etcd's own failures as error codes, and what they mean for a caller.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::etcd {

enum class Error : int {
    unresolved = 1,  ///< no host name could be resolved
    unreachable,     ///< no member took the connection
    no_answer,       ///< nothing came back in time
    closed,          ///< the connection broke
    protocol,        ///< what came back is none of etcd's gateway
    no_leader,       ///< the members have no leader, or are not reached by a majority
    learner,         ///< the member is not a voter yet, and serves no requests
    no_lease,        ///< the lease is gone
    no_space,        ///< the alarm NOSPACE: only deletions are taken
    overloaded,      ///< too many requests
    denied,          ///< no permission, or no user was named
    tls,             ///< no TLS session: certificate, host name, protocol
    token,           ///< no user was named, or what stands for it is no longer accepted
    no_users,        ///< authentication is not enabled
    too_old,         ///< the gateway does not know the request
    refused,         ///< anything else that the server says
    other_kind,      ///< at the name itself stands a key, which is none of this kind of lock
};

const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;
/// Of an answer that is an error: gRPC's code and the server's words.
error_code from_answer(long long grpc_code, unsigned http_status, std::string_view text) noexcept;
/// The server has surely not executed the request.
bool nothing_done(const error_code&) noexcept;

}  // namespace holdfast::etcd
