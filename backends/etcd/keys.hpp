// Maps names to keys, and reads what is stored in a key.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/spi/backend.hpp"
#include "options.hpp"

namespace holdfast::etcd {

/// "/holdfast/NAME/": the prefix of one lock's keys, which holders and waiters of `etcdctl lock
/// /holdfast/NAME` share. In NAME everything but printable ASCII, '/' and '%' is percent-encoded,
/// so that no lock's keys are among those of another.
std::string line_of(const Options&, std::string_view name);
/// "/holdfast/NAME": where other clients have single-key locks, which do not wait for ours, and
/// where the marker of permits is.
std::string_view name_key(std::string_view line);
/// The name that a key belongs to; nullopt for a key of no lock.
std::optional<std::string> name_of(const Options&, std::string_view key);
/// The beginning of the keys of names with `prefix`, in this namespace.
std::string names_from(const Options&, std::string_view prefix);
/// Marks an owner that has left, so that its late requests acquire nothing.
std::string tombstone_of(const Options&, std::string_view owner);
/// "/holdfast/%mark/NAME/": the prefix of what is recorded about a lock's holders, if `robust`.
std::string marks_of(const Options&, std::string_view name);
/// Where the last break of a name is recorded.
std::string record_of(const Options&, std::string_view name);
/// The end of the range of keys that begin with `prefix`.
std::string after(std::string prefix);

/// The value of one of our keys: its owner and units, and what operators have requested.
struct Entry {
    enum class Flag : std::uint8_t { none, asked, revoked };
    std::string_view owner;  ///< a part of what was read
    spi::Units units = {};
    milliseconds lock_delay{0};
    Flag flag = Flag::none;
};
std::string write_entry(const Entry&);
/// Nullopt when another client made it.
std::optional<Entry> read_entry(std::string_view value);
/// The units of a value; keys of other clients are mutexes.
spi::Units units_in(std::string_view value);
/// The beginning of all values beside which, and no others, these units may be let in at once. Not
/// for exclusive units, which are let in alone.
std::string compatible_prefix(const spi::Units&);
/// Value at the name itself while its permits are in use, so that other kinds of locks are refused.
inline constexpr std::string_view permits_marker = "hf1p";

}  // namespace holdfast::etcd
