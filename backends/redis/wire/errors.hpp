// What can go wrong between us and a Redis server, as codes of their own.
#pragma once
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::redis {

enum class Error {
    unresolved = 1,  ///< the host's name has no address
    refused,         ///< no connection to any of its addresses
    no_answer,       ///< the request's time was over
    closed,          ///< the connection broke
    tls,             ///< no TLS session: certificate, host name, protocol
    protocol,        ///< not what a Redis server answers
    denied,          ///< NOAUTH, WRONGPASS, NOPERM
    busy,            ///< LOADING, BUSY, MASTERDOWN, ...: later it may work
    read_only,       ///< READONLY: a replica
    no_write,        ///< OOM, MISCONF, NOREPLICAS: the server takes no writes
    wrong_type,      ///< the key is something else
    cluster,         ///< MOVED, ASK: a Redis Cluster
    not_replicated,  ///< fewer replicas than asked for have confirmed it in time
    no_script,       ///< NOSCRIPT; handled, never shown
    too_old,         ///< older than Redis 6.2
    refused_command  ///< any other error reply
};

const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;

/// The code for an error reply.
error_code from_reply(std::string_view text) noexcept;
/// What a person may read of it: never what we sent, which some servers repeat.
std::string_view shown(std::string_view text) noexcept;
/// True where one forbidden or unfit key among many is refused with all of them: asked for alone,
/// the others may be answered.
bool of_one_key(const error_code&) noexcept;
/// True when a script that was answered so cannot have changed anything.
bool nothing_done(const error_code&) noexcept;

}  // namespace holdfast::redis
