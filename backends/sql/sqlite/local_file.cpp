#include "local_file.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::uint32_t tmpfs = 0x01021994, ramfs = 0x858458F6;

/// File systems of one kernel only. FUSE, 9p and virtiofs are missing: what is behind them cannot
/// be determined, and another machine has another clock.
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

/// The mount that a path lies in; 0 where the kernel (before 5.8) does not say.
std::uint64_t mount_of(const std::string& path) noexcept {
    struct statx s {};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &s) != 0) return 0;
    return (s.stx_mask & STATX_MNT_ID) != 0 ? s.stx_mnt_id : 0;
}

/// SQLite's files of that path.
std::array<std::string, 3> with_log(const std::string& path) {
    return {path, path + "-wal", path + "-shm"};
}

/// A user that this user namespace does not know, such as its host's root. Without a namespace of
/// its own that number is a user like any other.
bool unmapped(uid_t user) {
    if (user != 65534) return false;
    std::ifstream in("/proc/self/uid_map");
    std::int64_t inside = 0, outside = 0, count = 0;
    return in >> inside >> outside >> count && count < 0xFFFFFFFF;
}

/// True when nobody else is in that group: many systems give each user one.
bool ours_alone(gid_t group) {
    std::array<char, 16384> users{}, groups{};
    passwd user{}, *me = nullptr;
    ::group its{}, *found = nullptr;
    ::getpwuid_r(::geteuid(), &user, users.data(), users.size(), &me);
    ::getgrgid_r(group, &its, groups.data(), groups.size(), &found);
    if (me == nullptr || found == nullptr || me->pw_gid != group) return false;
    if (std::string_view(found->gr_name) != me->pw_name) return false;
    for (char** member = found->gr_mem; *member != nullptr; ++member)
        if (std::string_view(*member) != me->pw_name) return false;
    return true;
}

/// The path without symbolic links: SQLite keeps the log beside the file that they lead to.
std::string real_path(const std::string& path) {
    std::array<char, PATH_MAX> real{};
    return ::realpath(path.c_str(), real.data()) != nullptr ? real.data() : path;
}

}  // namespace

result<FileId> file_id(const std::string& path) noexcept {
    // Not stat(): a kernel from 6.13 on gives a file whose times were read new ones with the next
    // write, and a commit takes a third longer.
    struct statx s {};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO, &s) != 0)
        return error_code(errno, boost::system::system_category());
    return FileId{::makedev(s.stx_dev_major, s.stx_dev_minor), s.stx_ino};
}

bool open_in_this_process(const FileId& file) noexcept {
    DIR* const all = ::opendir("/proc/self/fd");
    if (all == nullptr) return true;  // it cannot be determined
    bool found = false;
    while (const dirent* one = ::readdir(all)) {
        struct stat s {};
        found = ::fstat(std::atoi(one->d_name), &s) == 0 && FileId{s.st_dev, s.st_ino} == file;
        if (found) break;
    }
    ::closedir(all);
    return found;
}

spi::Failure check_place(const std::string& path) {
    const std::string folder = folder_of(real_path(path));
    struct stat s {};
    if (::stat(folder.c_str(), &s) != 0 || !S_ISDIR(s.st_mode)) {
        const int why = errno;
        if (why == EACCES)
            return {make_error(Finding::no_permission),
                    "no permission to enter the directory " + folder};
        return {make_error(Finding::missing_folder),
                "the directory " + folder + " does not exist; create it, or choose another path"};
    }
    const bool there = ::stat(path.c_str(), &s) == 0;
    struct stat link {};
    if (!there && ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode))
        return {make_error(Finding::not_a_file),
                path + " is a symbolic link that leads nowhere; remove it"};
    if (there && !S_ISREG(s.st_mode))
        return {make_error(Finding::not_a_file),
                path + " is not a file; name a file that Holdfast may create"};
    if (there && s.st_nlink > 1)
        return {make_error(Finding::linked_twice),
                path +
                    " has more than one hard link, and SQLite's log belongs to one name only; "
                    "remove the other links"};
    if (there && mount_of(path) != mount_of(folder))
        return {
            make_error(Finding::mounted_alone),
            path +
                " is mounted without its directory, so SQLite's log beside it is not the others'; "
                "mount its directory instead (with docker: -v DIRECTORY:DIRECTORY)"};
    struct statfs fs {};
    if (::statfs((there ? path : folder).c_str(), &fs) != 0)
        return {make_error(Finding::no_permission),
                std::string("cannot ask for the file system: ") + ::strerror(errno)};
    if (std::find(local_types.begin(), local_types.end(), type_of(fs)) == local_types.end())
        return {
            make_error(Finding::network_file_system),
            path + " is on a file system that is not known to be local (" + name_of(type_of(fs)) +
                "); leases in a file are safe on one machine only: use a local disk, or a server "
                "backend such as redis://"};
    if (::access((there ? path : folder).c_str(), R_OK | W_OK) != 0 ||
        (there && ::access(folder.c_str(), W_OK) != 0)) {
        const std::string what = there && ::access(path.c_str(), R_OK | W_OK) != 0
                                     ? "the file " + path
                                     : "the directory " + folder;
        return {make_error(Finding::no_permission), errno == EROFS
                                                        ? what + " is on a read-only file system"
                                                        : "no permission to write " + what};
    }
    return {};
}

void make_file(const std::string& path) noexcept {
    // Not by open(): closing it would drop the locks of a connection that another thread has.
    if (::mknod(path.c_str(), S_IFREG | 0620, 0) != 0) return;
    struct stat s {};
    if (::lstat(path.c_str(), &s) == 0 && (s.st_mode & S_IWGRP) != 0) ::chmod(path.c_str(), 0660);
}

void make_private(const std::string& path) noexcept {
    struct stat s {};
    for (const std::string& name : with_log(path))
        if (::lstat(name.c_str(), &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == ::geteuid() &&
            (s.st_mode & 0077) != 0)
            ::chmod(name.c_str(), 0600);
}

std::string readers_only(const std::string& path) {
    struct stat s {};
    for (const std::string& name : with_log(path)) {
        if (::stat(name.c_str(), &s) != 0) continue;
        const bool group = (s.st_mode & S_IRGRP) != 0 && (s.st_mode & S_IWGRP) == 0;
        if (group || (s.st_mode & S_IROTH) != 0) return name;
    }
    return {};
}

std::string readers_words(const std::string& name) {
    std::string path = name;
    for (const char* end : {"-wal", "-shm"})
        if (path.ends_with(end)) path.resize(path.size() - 4);
    std::string names;
    for (const std::string& one : with_log(path))
        names += " " + one;
    return "users who may read " + name + " can stop every lock in it: chmod g-r,o-rwx" + names;
}

std::vector<std::string> doubts_about(const std::string& path) {
    std::vector<std::string> doubts;
    const auto add = [&](const std::string& what) {
        doubts.push_back(what +
                         ", so other users can stop or forge every lock in it; choose a file " +
                         "and a directory of this user or of a common group");
    };
    if (const auto name = readers_only(path); !name.empty()) doubts.push_back(readers_words(name));
    struct stat file {
    }, folder{}, link{};
    if (::stat(path.c_str(), &file) != 0) return doubts;
    if (::stat(folder_of(path).c_str(), &folder) != 0) return doubts;
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode))
        doubts.push_back(path +
                         " is a symbolic link, and a user who can replace it can redirect "
                         "the locks; name the file itself");
    if ((folder.st_mode & S_IWOTH) != 0) add("every user may write the directory of " + path);
    // Several users share a file as members of the group that its directory hands on.
    const bool shared = (folder.st_mode & S_ISGID) != 0 && folder.st_gid == file.st_gid;
    if (file.st_uid != ::geteuid() && file.st_uid != 0 && !shared)
        add(path + " belongs to another user");
    return doubts;
}

spi::Failure check_private(const std::string& path) {
    const uid_t me = ::geteuid();
    const auto refuse = [&](const std::string& what) -> spi::Failure {
        return {make_error(Finding::not_private),
                "private=yes: " + what +
                    "; choose a directory of your own (--local: by HOME or "
                    "XDG_STATE_HOME)"};
    };
    struct stat s {};
    if (::lstat(path.c_str(), &s) == 0) {
        if (S_ISLNK(s.st_mode)) return refuse(path + " is a symbolic link");
        if (s.st_uid != me) return refuse(path + " belongs to another user");
        if ((s.st_mode & S_IWOTH) != 0) return refuse(path + " may be written by every user");
    }
    const std::string folder = folder_of(path);
    if (::stat(folder.c_str(), &s) == 0 && (s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return refuse("the directory " + folder + " may be written by others");
    for (const std::string& way : {folder, real_path(folder)})
        for (auto end = way.find('/', 1);; end = way.find('/', end + 1)) {
            const std::string part = way.substr(0, end);
            if (::lstat(part.c_str(), &s) == 0) {
                if (s.st_uid != me && s.st_uid != 0 && !unmapped(s.st_uid))
                    return refuse(part + " belongs to another user");
                const bool replaceable = (s.st_mode & S_ISVTX) == 0 && !S_ISLNK(s.st_mode);
                if (replaceable && (s.st_mode & S_IWOTH) != 0)
                    return refuse("the directory " + part + " may be written by every user");
                if (replaceable && (s.st_mode & S_IWGRP) != 0 && !ours_alone(s.st_gid))
                    return refuse("the directory " + part + " may be written by its group");
            }
            if (end == way.npos) break;
        }
    return {};
}

bool in_memory(const std::string& path) noexcept {
    struct statfs fs {};
    if (::statfs(path.c_str(), &fs) != 0) return false;
    return type_of(fs) == tmpfs || type_of(fs) == ramfs;
}

}  // namespace holdfast::sqlite
