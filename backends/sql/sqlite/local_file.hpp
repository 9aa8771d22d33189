// The database file as the file system sees it: whether SQLite's locks and our clock are enough
// there, and whether the path still leads to the file that is open.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

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

/// True when some descriptor of this process is open on that file.
bool open_in_this_process(const FileId&) noexcept;

/// Refuses what no lock can rest on, before SQLite touches it: a missing directory, a file system
/// that is not known to be local, a second hard link, a mount of the file alone, a path that is no
/// file. Never opens the file, as closing any descriptor of it would drop SQLite's locks. `detail`
/// receives the words.
error_code check_place(const std::string& path, std::string& detail);

/// Makes an empty file that its group may use as well if the umask lets it write: who may only read
/// the file may stop every lock in it. Does nothing where there is one.
void make_file(const std::string& path) noexcept;

/// Refuses a file that somebody else could put in the place of ours: one that is not this user's or
/// is a symbolic link, a directory that others may write, a way to it through those of others.
error_code check_private(const std::string& path, std::string& detail);

/// Takes other users' permissions on the file, its log and the log's index away, where this user
/// owns them.
void make_private(const std::string& path) noexcept;

/// The name of one of these three that another user may read and not write; empty: none.
std::string readers_only(const std::string& path);
/// What is to be said of it.
std::string readers_words(const std::string& name);

/// What an operator should know of the file's permissions, owner and directory.
std::vector<std::string> doubts_about(const std::string& path);

/// True when the file is kept in memory only and ends with the machine (tmpfs).
bool in_memory(const std::string& path) noexcept;

}  // namespace holdfast::sqlite
