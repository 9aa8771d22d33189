// The records of all processes, put together: one entry per acquisition, however many records it
// has. What cannot be read or cannot be true is told to the verdict and left out.
#pragma once
#include <deque>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "checker/format.hpp"
#include "checker/verdict.hpp"

namespace holdfast::bench::history {

struct Acquisition {
    Nanos invoked = never;
    Nanos in_line = never;  ///< somebody saw it in the queue then
    Nanos granted = never;
    Nanos until = 0;     ///< the last one believed
    Nanos over = never;  ///< releasing or told of the loss, whichever came first
    Nanos done = never;  ///< the failure or the release returned
    Nanos last = 0;      ///< its last record
    std::uint64_t token = 0;
    std::uint64_t owner = 0;  ///< fingerprint of the owner id; 0: none
    std::uint32_t name = 0;
    std::uint32_t file = 0;
    bool was_granted = false, was_lost = false, began_release = false, was_released = false;
    bool abandoned = false, has_failed = false, left_out = false;
    Previous previous{};
    Outcome outcome{};
    Answer answer{};

    /// Asked, and not to be left out.
    bool counts() const { return invoked != never && !left_out; }
};

struct StoreWrite {
    Nanos at = 0;
    std::uint64_t store = 0, token = 0, writer = 0;
    std::uint32_t name = 0, file = 0;
    bool accepted = false, fenced = false;
};

struct Sighting {
    Nanos asked = 0, at = 0;
    std::uint64_t owner = 0;
    std::uint32_t name = 0, file = 0;
};

/// A server was killed at some moment of these.
struct ServerKill {
    Nanos from = 0, to = 0;
};

struct Name {
    std::string text;
    bool fencing = false, fifo = false;
    bool doubtful = false;  ///< some of its acquisitions are left out
};

struct File {
    std::string path, label;
    std::int32_t process = 0;
    std::uint32_t recorder = 0;
    bool closed = false;
    bool damaged = false;     ///< records are missing somewhere
    std::uint32_t first = 0;  ///< of its acquisitions: number n is at first + n - 1
    std::uint32_t count = 0;
};

class History {
public:
    std::vector<File> files;
    std::vector<Name> names;
    std::vector<Acquisition> acquisitions;
    std::vector<StoreWrite> writes;  ///< those of one file in the order of the file
    std::vector<Sighting> sightings;
    std::vector<ServerKill> kills;

    /// Index into acquisitions, or npos.
    std::uint32_t find(std::uint64_t id) const;
    static constexpr std::uint32_t npos = ~std::uint32_t{0};
    bool damaged() const;
    /// "worker-3 [812] #17": file's label, process, number.
    std::string who(const Acquisition&) const;
    /// Seconds since the first record, with nanoseconds.
    std::string when(Nanos) const;
    Nanos begin = never;

private:
    friend class Reader;
    std::unordered_map<std::uint32_t, std::uint32_t> by_recorder_;
    std::unordered_map<std::string, std::uint32_t> by_name_;
};

/// Reads files that nobody writes any more. Never throws for what is in a file; a file that cannot
/// be opened is `torn`. Blocks while reading; memory: about 100 bytes for each acquisition.
History read(const std::vector<std::filesystem::path>& files, Verdict&);

/// One line for each record of a file, in its order, for people.
std::string dump(const std::filesystem::path& file);

}  // namespace holdfast::bench::history
