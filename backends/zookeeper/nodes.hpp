// How names become nodes, and what the names of nodes say.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::zookeeper {

/// The name of a lock as one path component. Everything but printable ASCII, and '/' and '%', is
/// percent-encoded, and so is the beginning of what the server or this backend keeps for itself.
std::string escape(std::string_view name, bool at_root);
/// Empty when it is not what escape() makes.
std::optional<std::string> unescape(std::string_view component);

/// Random, in the form in which Curator writes its own: 8-4-4-4-12 hexadecimal digits.
std::string make_guid();
/// Whose recipe a node follows: what it looks like, and which other nodes its maker counts.
enum class Recipe : std::uint8_t {
    mutex,         ///< "lock-<n>": Curator's InterProcessMutex, LeaderSelector, and our mutex
    latch,         ///< "latch-<n>": Curator's LeaderLatch, and our mutex with node=latch-
    writer,        ///< "__WRIT__<n>": Curator's InterProcessReadWriteLock, and our shared_mutex
    reader,        ///< "__READ__<n>": the same
    kazoo_writer,  ///< "__lock__<n>": kazoo's Lock and WriteLock
    kazoo_reader,  ///< "__rlock__<n>": kazoo's ReadLock
    permit,        ///< "lease-<n>": Curator's InterProcessSemaphoreV2, and our semaphore
};
constexpr bool reads(Recipe r) noexcept {
    return r == Recipe::reader || r == Recipe::kazoo_reader;
}
/// None of Curator's recipes counts the nodes of another.
constexpr bool of_other_recipe(Recipe a, Recipe b) noexcept {
    if (a == Recipe::reader) a = Recipe::writer;  // these two are one
    if (b == Recipe::reader) b = Recipe::writer;
    const auto curators = [](Recipe r) {
        return r == Recipe::mutex || r == Recipe::latch || r == Recipe::writer;
    };
    return curators(a) && curators(b) && a != b;
}
/// "_c_<guid>-lock-" and so on, to which the server adds the sequence.
std::string node_prefix(std::string_view guid, Recipe = Recipe::mutex);

/// How a node stands in line. Nothing for foreign names. The number wraps from 2147483647 to
/// -2147483648.
struct Rank {
    std::int32_t sequence = 0;
    Recipe recipe = Recipe::mutex;
};
std::optional<Rank> rank_of(std::string_view node) noexcept;
/// It stands in line for a name: no permit does, which has a folder of its own.
bool stands_in_line(std::string_view node) noexcept;
std::optional<std::int32_t> sequence_of(std::string_view node) noexcept;
/// No other node of the same line has, or will have, this number. At the end of 32 bits the server
/// gives the last ones again and again, for as long as the line's own node is there.
bool is_unique(std::int32_t sequence) noexcept;
/// True when the node was made by the acquisition with that guid.
bool made_by(std::string_view node, std::string_view guid) noexcept;

/// The folders of a semaphore, below its own node: as Curator has them.
constexpr std::string_view permits_folder = "leases", turns_folder = "locks";
/// What no recipe of ours, of Curator's or of kazoo's locks makes there: in the folder of permits,
/// or else where a line is. A claim by another layout, if it is a session's.
bool is_stranger(std::string_view node, bool among_permits) noexcept;
/// For people: what stands there, and whose it may be.
std::string words_for_stranger(std::string_view path);
/// What the own node of a semaphore says: its limit, in a form in which kazoo refuses it.
std::string limit_text(std::uint32_t limit);
/// Nothing when it is none of ours.
std::optional<std::uint32_t> read_limit(std::string_view) noexcept;

/// What is kept in a lock's node.
struct NodeData {
    std::string owner;
    long long ttl_ms = 0;
    bool revoked = false;
    bool shared = false;        ///< a writer's that was downgraded
    bool asked = false;         ///< somebody wants it released
    long long delay_ms = 0;     ///< lock_delay
    std::uint32_t permits = 0;  ///< that are held or waited for; 0: of no semaphore
};
std::string write_data(const NodeData&);
/// Nothing when another library made it.
std::optional<NodeData> read_data(std::string_view);
/// What Curator writes to a node whose holder is to release it.
constexpr std::string_view curator_revoke = "__REVOKE__";

}  // namespace holdfast::zookeeper
