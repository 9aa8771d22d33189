// Small text files of the lab: configurations written, logs read for messages.
#pragma once

#include <filesystem>
#include <string>

namespace holdfast::lab::detail {

/// Writes `text` to `path`, replacing it, readable by the owner only. Errors: LabError.
void write_text(const std::filesystem::path& path, const std::string& text);

/// The content of `path`; empty when it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// The last `lines` lines of `path`; empty when it cannot be read.
std::string last_lines(const std::filesystem::path& path, std::size_t lines);

}  // namespace holdfast::lab::detail
