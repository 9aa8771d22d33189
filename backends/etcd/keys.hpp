// How names become keys, and what is kept in a key.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "options.hpp"

namespace holdfast::etcd {

/// "/holdfast/NAME/": the keys of one lock begin with it. Holders and waiters of `etcdctl lock
/// /holdfast/NAME` have theirs there as well. In NAME everything but printable ASCII, and '/' and
/// '%', is percent-encoded, so that no lock's keys are among those of another.
std::string line_of(const Options&, std::string_view name);
/// The name to which a key belongs; nothing when it is no lock's.
std::optional<std::string> name_of(const Options&, std::string_view key);
/// Names begin so, as far as the namespace and `prefix` say.
std::string names_from(const Options&, std::string_view prefix);
/// Marks an owner that has left, so that a late request of its takes nothing any more.
std::string grave_of(const Options&, std::string_view owner);
/// The end of the range of all keys that begin with `prefix`.
std::string after(std::string prefix);

/// What is kept in a key of ours: who stands there, and whether it was revoked.
struct Entry {
    std::string owner;
    bool revoked = false;
};
std::string write_entry(std::string_view owner, bool revoked);
/// Nothing when another client made it.
std::optional<Entry> read_entry(std::string_view value);

}  // namespace holdfast::etcd
