// The database file in its file system: whether SQLite's locks and our clock suffice there, and
// whether the path still leads to the open file.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/spi/failure.hpp"

namespace holdfast::sqlite {

/// The identity of a file.
struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 within for a pointer
    friend auto operator<=>(const FileId&, const FileId&) = default;
};

/// The file that the path leads to now. Errors: no_such_file_or_directory and other system codes.
result<FileId> file_id(const std::string& path) noexcept;

/// True when this process has a descriptor open on that file.
bool open_in_this_process(const FileId&) noexcept;

/// Refuses, before SQLite touches it, what no lock can rely on: a missing directory, a file system
/// that is not known to be local, a second hard link, a mount of the file alone, a path that is no
/// file. Never opens the file, since closing a descriptor of it would drop SQLite's locks.
spi::Failure check_place(const std::string& path);

/// Makes an empty file, writable for its group if the umask lets it: a user that may only read the
/// file could block every lock in it. Does nothing if it exists.
void make_file(const std::string& path) noexcept;

/// Refuses a file that another user could replace: not owned by this user, a symbolic link, a
/// directory that others may write, or a way to it through directories of others.
spi::Failure check_private(const std::string& path);

/// Removes other users' permissions on the file, its log and the log's index, if this user owns
/// them.
void make_private(const std::string& path) noexcept;

/// The name of one of these three that another user may read and not write; empty: none.
std::string readers_only(const std::string& path);
/// The warning about it.
std::string readers_words(const std::string& name);

/// Warnings about the file's permissions, owner and directory.
std::vector<std::string> doubts_about(const std::string& path);

/// True when the file is only in memory and ends with the machine (tmpfs).
bool in_memory(const std::string& path) noexcept;

}  // namespace holdfast::sqlite
