// Error codes for what can go wrong with a Redis server.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::resp {

class Script;

enum class Error {
    unresolved = 1,   ///< the host's name has no address
    refused,          ///< no connection to any of its addresses
    no_answer,        ///< no answer in time
    closed,           ///< the connection broke
    tls,              ///< no TLS session: certificate, host name, protocol
    protocol,         ///< no valid answer of a Redis server
    denied,           ///< NOAUTH, WRONGPASS, NOPERM
    busy,             ///< LOADING, BUSY, MASTERDOWN, ...: may work later
    read_only,        ///< READONLY: a replica
    no_write,         ///< MISCONF: the server refuses writes
    wrong_type,       ///< the key has another type
    cluster,          ///< MOVED, ASK, CROSSSLOT: a server of a Redis Cluster
    not_replicated,   ///< fewer replicas than required confirmed it in time
    no_script,        ///< NOSCRIPT; handled, never shown
    too_old,          ///< older than Redis 6.2
    refused_command,  ///< any other error reply
    no_memory,        ///< OOM
    few_replicas,     ///< NOREPLICAS
    no_command,       ///< switched off, or renamed (rename-command)
    reserved_name,    ///< a name that looks like one of our own keys
    no_primary,       ///< the Sentinels answer, the primary that they name does not (yet)
    no_sentinel,      ///< no Sentinel answers
    unknown_primary,  ///< the Sentinels watch nothing of this name
    unconfirmed,      ///< no majority of the Sentinels has confirmed the primary in time
    moving,           ///< TRYAGAIN: the slot is on its way to another server of the cluster
    uncovered,        ///< CLUSTERDOWN, or no server has the slot
    no_cluster,       ///< a server outside of a cluster
    two_slots,        ///< a name whose keys a cluster would keep apart
    cut_short  ///< a script that missed a key which it had removed itself: the slot is on its way
};

const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;

/// The code for an error reply.
error_code from_reply(std::string_view text) noexcept;
/// The part of it for people: never what we sent, which some servers repeat.
std::string_view shown(std::string_view text) noexcept;
/// The same for what a script was answered, with the command that was refused in it.
std::string shown(std::string_view text, const Script&);
/// True if one forbidden or unfit key among many causes it for all. Alone, the others may be
/// answered.
bool of_one_key(const error_code&) noexcept;
/// True if the server is there and may do it later.
bool for_now(const error_code&) noexcept;
/// True if no connection was made for a reason that a caller who waits outlives.
bool waits_out(const error_code&) noexcept;
/// True if a script with this answer cannot have changed anything.
bool nothing_done(const error_code&) noexcept;

}  // namespace holdfast::resp
