// Histories made up for tests of the checker: what processes of a lock that keeps its promises
// would have recorded, with delays, pauses, kills, lost replies and late writes.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "checker/check.hpp"

namespace histories {

namespace history = holdfast::bench::history;
using history::Kind;
using history::Nanos;
using history::Record;

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
}
inline bool chance(Random& random, double p) {
    return std::bernoulli_distribution(p)(random);
}

/// A folder that goes with the object.
class Folder {
public:
    Folder();
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// One file before it is written.
struct Log {
    history::Header header;
    std::vector<Record> records;
    std::string bytes() const;
};

struct World {
    std::vector<Log> logs;         ///< of processes; the last one is the stores' and the observer's
    std::uint64_t stale = 0;       ///< writes that an unfenced store took from a former holder
    std::uint64_t held_after = 0;  ///< grants made at the server whose caller got an error
    /// Writes the files and returns their names.
    std::vector<std::filesystem::path> save(const std::filesystem::path& folder) const;
    history::Verdict judge(const history::Limits& = {}) const;
};

struct Shape {
    int processes = 4, names = 2, rounds = 12;
    bool fifo = true, kills = true, errors = true, pauses = true, lost_replies = true;
};

World correct(Random&, const Shape&);

/// Where one acquisition's records are: file and place.
struct Spot {
    std::size_t log = 0, record = 0;
};
struct Trace {
    std::uint64_t id = 0;
    std::uint16_t name = 0;
    std::map<Kind, Spot> at;
    bool has(Kind k) const { return at.contains(k); }
};
/// All acquisitions of a world; those that were granted by the time of their grant.
std::vector<Trace> traces(const World&);
inline Record& record(World& world, const Trace& t, Kind k) {
    const Spot& spot = t.at.at(k);
    return world.logs[spot.log].records[spot.record];
}

}  // namespace histories
