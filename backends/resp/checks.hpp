// What can make a Redis server unsafe or slow for locks: the facts to ask for, and the judgements
// that Redis and Redlock share.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "codec.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast::resp {

/// What a lock touches, for a name that nobody uses. Empty: not used in this mode.
struct Touched {
    std::string lock;     ///< the lock's own key
    std::string sibling;  ///< one of the keys beside it
    std::string channel;  ///< on which waiters are notified
};
/// A part of a name that nobody uses.
std::string unused_name();
/// The commands whose replies are the facts. None changes anything: the last one tries what locks
/// do on keys that are not there.
std::vector<std::vector<std::string>> questions(const Touched&);
/// Stores the facts of one reply: INFO, TIME, or names and values of CONFIG GET. An error stores
/// nothing, nor does null (no reply).
void note_answer(spi::Facts&, std::size_t question, const Reply*);
/// Records the moments around the round trip that answered TIME.
void note_times(spi::Facts&, std::chrono::system_clock::time_point before,
                std::chrono::system_clock::time_point after);

namespace judge {

using Found = std::optional<spi::Judgement>;

Found answers(const spi::Facts&);            ///< it is not "silent"
Found answered(const spi::Facts&);           ///< INFO was allowed
Found persistence(const spi::Facts&);        ///< an append-only file is kept
Found append_only_file(const spi::Facts&);   ///< and is complete
Found fsync(const spi::Facts&);              ///< each write is synced
Found fsync_on_rewrite(const spi::Facts&);   ///< also during a rewrite
Found role(const spi::Facts&);               ///< not a replica
Found replicas(const spi::Facts&);           ///< there is no replica to fail over to
Found eviction(const spi::Facts&);           ///< locks are not evicted
Found memory(const spi::Facts&);             ///< there is free memory
Found writes_stopped(const spi::Facts&);     ///< no failed save makes it refuse writes
Found replicas_required(const spi::Facts&);  ///< min-replicas-to-write is met
Found connections(const spi::Facts&);        ///< there are free connections
Found idle_timeout(const spi::Facts&);       ///< idle connections are kept
Found loading(const spi::Facts&);            ///< its data is loaded
Found fork_time(const spi::Facts&);          ///< a save does not block it

}  // namespace judge

/// Whether everything that the server has answered survives its crash.
bool keeps_each_write(const spi::Facts&);

/// Adds the rows that mean the same for Redis and for a node of Redlock. Their ids begin with
/// `redis.`.
std::vector<spi::Check> with_node_checks(std::vector<spi::Check> first);

}  // namespace holdfast::resp
