#include "local_file.hpp"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::uint32_t tmpfs = 0x01021994, ramfs = 0x858458F6;

/// File systems of one kernel only. FUSE, 9p and virtiofs are missing: what is behind them cannot
/// be told, and another machine's boot id would read as "expired".
constexpr std::array<std::uint32_t, 12> local_types{0x0000EF53,  // ext2, ext3, ext4
                                                    0x58465342,  // xfs
                                                    0x9123683E,  // btrfs
                                                    0x2FC12FC1,  // zfs
                                                    0xF2F52010,  // f2fs
                                                    0xCA451A4E,  // bcachefs
                                                    0x3153464A,  // jfs
                                                    0x52654973,  // reiserfs
                                                    0x3434,      // nilfs
                                                    0x794C7630,  // overlayfs
                                                    tmpfs,      ramfs};

struct NetworkType {
    std::uint32_t type;
    const char* name;
};
/// Only for the words of the refusal.
constexpr std::array<NetworkType, 10> network_types{{{0x6969, "NFS"},
                                                     {0x517B, "SMB"},
                                                     {0xFF534D42, "CIFS"},
                                                     {0xFE534D42, "SMB2"},
                                                     {0x00C36400, "Ceph"},
                                                     {0x5346414F, "AFS"},
                                                     {0x01021997, "9p"},
                                                     {0x65735546, "FUSE"},
                                                     {0x6A656A63, "virtiofs"},
                                                     {0x0BD00BD0, "Lustre"}}};

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::uint32_t type_of(const struct statfs& fs) noexcept {
    return static_cast<std::uint32_t>(fs.f_type);
}

std::string name_of(std::uint32_t type) {
    for (const NetworkType& t : network_types)
        if (t.type == type) return t.name;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "type 0x%x", type);
    return text.data();
}

}  // namespace

result<FileId> file_id(const std::string& path) noexcept {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) return error_code(errno, boost::system::system_category());
    return FileId{s.st_dev, s.st_ino};
}

error_code check_place(const std::string& path, std::string& detail) {
    const std::string folder = folder_of(path);
    struct stat s {};
    if (::stat(folder.c_str(), &s) != 0 || !S_ISDIR(s.st_mode)) {
        const int why = errno;
        if (why == EACCES) {
            detail = "no right to enter the folder " + folder;
            return make_error(Finding::no_permission);
        }
        detail = "the folder " + folder + " does not exist; create it, or choose another path";
        return make_error(Finding::missing_folder);
    }
    const bool there = ::stat(path.c_str(), &s) == 0;
    if (there && !S_ISREG(s.st_mode)) {
        detail = path + " is not a file; name a file that Holdfast may create";
        return make_error(Finding::not_a_file);
    }
    if (there && s.st_nlink > 1) {
        detail = path +
                 " has more than one hard link, and SQLite's log belongs to one name only; "
                 "remove the other links";
        return make_error(Finding::linked_twice);
    }
    struct statfs fs {};
    if (::statfs((there ? path : folder).c_str(), &fs) != 0) {
        detail = std::string("cannot ask for the file system: ") + ::strerror(errno);
        return make_error(Finding::no_permission);
    }
    if (std::find(local_types.begin(), local_types.end(), type_of(fs)) == local_types.end()) {
        detail = path + " is on a file system that is not known to be local (" +
                 name_of(type_of(fs)) +
                 "); leases in a file are safe on one machine only: use a local disk, or a server "
                 "backend such as redis://";
        return make_error(Finding::network_file_system);
    }
    if (::access((there ? path : folder).c_str(), R_OK | W_OK) != 0 ||
        (there && ::access(folder.c_str(), W_OK) != 0)) {
        const std::string what = there && ::access(path.c_str(), R_OK | W_OK) != 0
                                     ? "the file " + path
                                     : "the folder " + folder;
        detail =
            errno == EROFS ? what + " is on a read-only file system" : "no right to write " + what;
        return make_error(Finding::no_permission);
    }
    return {};
}

bool in_memory(const std::string& path) noexcept {
    struct statfs fs {};
    if (::statfs(path.c_str(), &fs) != 0) return false;
    return type_of(fs) == tmpfs || type_of(fs) == ramfs;
}

}  // namespace holdfast::sqlite
