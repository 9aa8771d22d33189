// Owner ids: they name the holder in one string that every server can store.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/export.hpp"

namespace holdfast::spi {

/// What an owner id says of its process.
struct Owner {
    std::string host;
    long pid = 0;
    std::string note;
    bool ours = false;  ///< false: not an id that make_owner made
};

/// A new owner id: 22 random characters (128 bits) first, so that no two share a prefix, then
/// ".host.pid" and, with a note, ".note"; host and note are percent-encoded. Only letters, digits
/// and -_~.%; at most 512 bytes, with at most 128 bytes of the note. Never repeats, not even in a
/// forked child. Thread-safe. Throws std::system_error when the system has no random bytes.
HOLDFAST_EXPORT std::string make_owner(std::string_view note);
/// Reads any text. For one that make_owner did not make, `ours` is false and all else empty.
/// Control characters become '?'.
HOLDFAST_EXPORT Owner parse_owner(std::string_view);

}  // namespace holdfast::spi
