// What can make a Redis server unsafe or slow for locks: which facts are asked, and the judgements
// that Redis and Redlock have in common.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "codec.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast::redis {

/// The commands whose replies are the facts. All of them only read.
const std::vector<std::vector<std::string>>& questions();
/// Keeps the facts of one reply: INFO, TIME, or names and values of CONFIG GET. An error, and a
/// null for no reply, keeps nothing.
void note_answer(spi::Facts&, std::size_t question, const Reply*);
/// The moments around the round trip in which TIME was answered.
void note_times(spi::Facts&, std::chrono::system_clock::time_point before,
                std::chrono::system_clock::time_point after);

namespace judge {

using Found = std::optional<spi::Judgement>;

Found answered(const spi::Facts&);           ///< whether INFO was allowed
Found persistence(const spi::Facts&);        ///< an append-only file is kept
Found append_only_file(const spi::Facts&);   ///< and is complete
Found fsync(const spi::Facts&);              ///< each write is synced
Found fsync_on_rewrite(const spi::Facts&);   ///< also during a rewrite
Found role(const spi::Facts&);               ///< not a replica
Found replicas(const spi::Facts&);           ///< nobody to fail over to
Found eviction(const spi::Facts&);           ///< locks are not evicted
Found memory(const spi::Facts&);             ///< memory is left
Found writes_stopped(const spi::Facts&);     ///< no failed save makes it refuse writes
Found replicas_required(const spi::Facts&);  ///< min-replicas-to-write is met
Found connections(const spi::Facts&);        ///< connections are left
Found idle_timeout(const spi::Facts&);       ///< idle connections stay
Found loading(const spi::Facts&);            ///< the data is there
Found fork_time(const spi::Facts&);          ///< a save does not stop it

}  // namespace judge

/// Whether a crash of the server cannot cost what it has answered.
bool keeps_each_write(const spi::Facts&);

/// The rows that mean the same to Redis and to a node of Redlock. The ids begin with `redis.`.
std::vector<spi::Check> with_node_checks(std::vector<spi::Check> first);

}  // namespace holdfast::redis
