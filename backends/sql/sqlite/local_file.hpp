// The database file as the file system sees it: whether SQLite's locks and our clock are enough
// there, and whether the path still leads to the file that is open.
#pragma once
#include <sys/types.h>

#include <string>

#include "holdfast/error.hpp"

namespace holdfast::sqlite {

/// Which file a path leads to.
struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 within for a pointer
    friend auto operator<=>(const FileId&, const FileId&) = default;
};

/// The file that the path leads to now. Errors: no_such_file_or_directory and other system codes.
result<FileId> file_id(const std::string& path) noexcept;

/// Refuses what no lock can rest on, before SQLite touches it: a missing folder, a file system that
/// is not known to be local, a second hard link, a path that is no file. Never opens the file, as
/// closing any descriptor of it would drop SQLite's locks. `detail` receives the words.
error_code check_place(const std::string& path, std::string& detail);

/// True when the file is kept in memory only and ends with the machine (tmpfs).
bool in_memory(const std::string& path) noexcept;

}  // namespace holdfast::sqlite
