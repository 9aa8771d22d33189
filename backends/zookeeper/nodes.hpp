// Maps names to nodes, and reads the names of nodes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::zookeeper {

/// The name of a lock as one path component. Percent-encodes everything but printable ASCII, '/'
/// and '%', and the beginning of names that the server or this backend reserves.
std::string escape(std::string_view name, bool at_root);
/// Nullopt when escape() cannot have made it.
std::optional<std::string> unescape(std::string_view component);

/// Random, in Curator's form: 8-4-4-4-12 hexadecimal digits.
std::string make_guid();
/// The recipe that a node follows: its form, and which other nodes its maker counts.
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
/// True for two of Curator's recipes that do not count each other's nodes.
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

/// A node's rank in line; nullopt for foreign names. The number wraps from 2147483647 to
/// -2147483648. Where Curator (5.5 and later) downgrades, its reader's node has two: first that of
/// the writer, whose place it has, then its own.
struct Rank {
    std::int32_t sequence = 0;
    Recipe recipe = Recipe::mutex;
};
std::optional<Rank> rank_of(std::string_view node) noexcept;
/// Whether it stands in line for a name. Permits do not: they have a folder of their own.
bool stands_in_line(std::string_view node) noexcept;
std::optional<std::int32_t> sequence_of(std::string_view node) noexcept;
/// Whether no other node of the line has, or will have, this number. At the end of 32 bits the
/// server repeats the last ones for as long as the line's own node exists.
bool is_unique(std::int32_t sequence) noexcept;
/// Whether the acquisition with that guid made the node.
bool made_by(std::string_view node, std::string_view guid) noexcept;

/// The guid in its name; the name itself where there is none.
std::string guid_of(std::string_view node);

/// The folders of a semaphore, below its own node, as in Curator.
constexpr std::string_view permits_folder = "leases", turns_folder = "locks";
/// A node that no lock recipe of ours, Curator's or kazoo's makes there: in the folder of permits,
/// or else where a line is. If it belongs to a session, a client claims the name by another layout.
bool is_stranger(std::string_view node, bool among_permits) noexcept;
/// For people: what the node is, and whose it may be.
std::string words_for_stranger(std::string_view path);
/// The data of a semaphore's own node: its limit, in a form that makes kazoo refuse it.
std::string limit_text(std::uint32_t limit);
/// Nullopt for the data of another library.
std::optional<std::uint32_t> read_limit(std::string_view) noexcept;

/// The data of a lock's node.
struct NodeData {
    std::string owner;
    long long ttl_ms = 0;
    bool revoked = false;
    bool shared = false;        ///< a writer's, after a downgrade
    bool asked = false;         ///< its release was requested
    long long delay_ms = 0;     ///< lock_delay
    std::uint32_t permits = 0;  ///< held or waited for; 0: no semaphore
};
std::string write_data(const NodeData&);
/// Nullopt when another library made it.
std::optional<NodeData> read_data(std::string_view);
/// Curator's data for a node whose holder is asked to release.
constexpr std::string_view curator_revoke = "__REVOKE__";

}  // namespace holdfast::zookeeper
