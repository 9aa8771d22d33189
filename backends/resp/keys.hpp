// The names of keys: what stands beside a lock's own key, and what a name may not look like.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::resp {

/// "{key}:hf:X", or "{tag}:hf:X:key" for a key with a tag of its own.
void sibling(std::string& out, std::string_view key, char which);
/// Where the last break of a name is recorded, and for how long.
std::string record_key(std::string_view prefix, std::string_view name);
inline constexpr const char* record_seconds = "86400";
/// True for names that look like one of our own sibling keys.
bool reserved(std::string_view prefix, std::string_view name) noexcept;
/// Escapes text so that SCAN's MATCH takes it literally.
std::string literal_pattern(std::string_view);

}  // namespace holdfast::resp
