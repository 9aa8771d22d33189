// Error codes of SQLite: the extended result code itself, and our own findings about the file. All
// map to conditions of holdfast::errc.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::sqlite {

/// Findings beside SQLite's result codes; above all values that SQLite uses.
enum class Finding : int {
    missing_folder = 1 << 24,  ///< the folder of the file does not exist, or is none
    no_permission,             ///< the file or its folder may not be read and written
    network_file_system,       ///< not on the list of local file systems
    linked_twice,              ///< the file has more than one hard link
    mounted_alone,             ///< the file is a mount of its own, and its log is not
    not_private,               ///< private=yes, and other users could replace the file
    not_a_file,                ///< the path is a folder, a device, ...
    no_wal,                    ///< the file cannot be switched to write-ahead logging
    newer_format,              ///< the tables were made by a newer Holdfast
    foreign_table,             ///< a table with our name that is not ours
    foreign_row,               ///< a row with that name that is no exclusive lock
    replaced,                  ///< the file was replaced or deleted while it was open
    older_leases,              ///< an older Holdfast still holds leases in the file
    unknown_clock,             ///< this process cannot tell the machine's boot time
    bad_deadline,              ///< the request's deadline had passed before it began
    hung,                      ///< the disk did not answer
    forked_inside,             ///< a thread of the parent was inside SQLite at the fork
};

const boost::system::error_category& category() noexcept;
error_code make_error(int sqlite_code) noexcept;
error_code make_error(Finding) noexcept;

}  // namespace holdfast::sqlite
