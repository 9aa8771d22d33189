// Owner ids: who holds, in one string that every server can keep.
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
/// ".host.pid" and, when there is a note, ".note", host and note percent-encoded. Only letters,
/// digits and -_~.%; at most 512 bytes, of the note at most 128 bytes. Never the same twice, in a
/// forked child neither. Thread-safe; throws std::system_error when the system has no random bytes.
HOLDFAST_EXPORT std::string make_owner(std::string_view note);
/// Takes any text; one that make_owner did not make gives `ours == false` and nothing else.
/// Control characters come back as '?'.
HOLDFAST_EXPORT Owner parse_owner(std::string_view);

}  // namespace holdfast::spi
