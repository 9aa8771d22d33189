// How names become keys, and what is kept in a key.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/spi/backend.hpp"
#include "options.hpp"

namespace holdfast::etcd {

/// "/holdfast/NAME/": the keys of one lock begin with it. Holders and waiters of `etcdctl lock
/// /holdfast/NAME` have theirs there as well. In NAME everything but printable ASCII, and '/' and
/// '%', is percent-encoded, so that no lock's keys are among those of another.
std::string line_of(const Options&, std::string_view name);
/// "/holdfast/NAME": where other clients have locks of one key, which wait for none of ours, and
/// the marker of permits is.
std::string alone_of(std::string line);
/// The name to which a key belongs; nothing when it is no lock's.
std::optional<std::string> name_of(const Options&, std::string_view key);
/// Names begin so, as far as the namespace and `prefix` say.
std::string names_from(const Options&, std::string_view prefix);
/// Marks an owner that has left, so that a late request of its takes nothing any more.
std::string grave_of(const Options&, std::string_view owner);
/// "/holdfast/%mark/NAME/": what is remembered of a lock's holders begins with it, if `robust`.
std::string marks_of(const Options&, std::string_view name);
/// The end of the range of all keys that begin with `prefix`.
std::string after(std::string prefix);

/// What is kept in a key of ours: who stands there for what, and what operators have to say.
struct Entry {
    enum class Flag : std::uint8_t { none, asked, revoked };
    std::string owner;
    spi::Units units = {};
    milliseconds lock_delay{0};
    Flag flag = Flag::none;
};
std::string write_entry(const Entry&);
/// Nothing when another client made it.
std::optional<Entry> read_entry(std::string_view value);
/// Other clients' keys are of mutexes.
spi::Units units_in(std::string_view value);
/// How the values of all keys begin beside which these units may be let in at once, and of no
/// others. Not for exclusive ones, which are let in alone.
std::string beside(const spi::Units&);
/// Stands at the name itself while permits of it are in use, so that whoever wants it as another
/// kind of lock is refused.
inline constexpr std::string_view permits_marker = "hf1p";

}  // namespace holdfast::etcd
