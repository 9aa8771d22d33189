// What this file and its place are, and what follows for its locks: `holdfast doctor`, probe and
// `require`.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "holdfast/spi/check.hpp"
#include "questions.hpp"

namespace holdfast::sqlite {
namespace {

using Found = std::optional<spi::Judgement>;

Found judge_version(const spi::Facts& f) {
    const std::string version = "SQLite " + std::string(f.text("version"));
    if (!may_lose_commits(static_cast<int>(f.number("version_number").value_or(0))))
        return spi::sound(version);
    return spi::unknown(
        version +
        " can, very rarely, lose a commit when the log begins anew beside a checkpoint by another "
        "program or an older Holdfast (its WAL-reset bug, up to 3.51.2, unless your distribution "
        "has mended it)");
}

Found judge_permissions(const spi::Facts& f) {
    const auto doubts = f.text("doubts");
    return doubts.empty() ? spi::sound() : spi::unsafe(std::string(doubts));
}

Found judge_memory(const spi::Facts& f) {
    return f.text("in_memory") == "1" ? spi::unsafe("the file is kept in memory only")
                                      : spi::sound();
}

Found judge_space(const spi::Facts& f) {
    const auto free = f.number("free_bytes");
    if (!free) return {};
    const std::string words = std::to_string(*free >> 20) + " MiB are free on its disk";
    return *free < (16LL << 20) ? spi::slow(words) : spi::sound(words);
}

Found judge_log(const spi::Facts& f) {
    const auto size = f.number("log_bytes");
    if (!size) return {};
    const std::string words = "its log has " + std::to_string(*size >> 20) + " MiB";
    return *size > (64LL << 20) ? spi::slow(words) : spi::sound(words);
}

constexpr spi::Check checks[] = {
    {"sqlite.version", "a lock could be given twice", "3.51.3, 3.50.7 and 3.44.6 have the fix",
     judge_version},
    {"sqlite.permissions", "those users can stop or forge every lock in it",
     "a file and a directory of this user alone, or of a common group", judge_permissions},
    {"sqlite.memory",
     "its locks and tokens end with the machine, and a store that kept a token then refuses the "
     "next holder",
     "choose a file on a disk", judge_memory},
    {"sqlite.space", "on a full disk no lock is acquired or renewed",
     "free some, or choose another disk", judge_space},
    {"sqlite.log", "each grant reads through it",
     "find the program that keeps a read open on the file", judge_log},
};

}  // namespace

std::vector<spi::Check> all_checks() {
    return {std::begin(checks), std::end(checks)};
}

spi::Answer<Examination> Questions::examine(Connection& c, boot_clock::time_point deadline) {
    if (auto failed = c.open(deadline)) return failed;
    // Only the write lock proves that the file can be written.
    const int rc = c.begin(deadline);
    if (rc != SQLITE_OK) {
        auto failed = c.fail(rc);
        c.rollback();
        return failed;
    }
    c.rollback();
    const std::string& path = c.database().path;
    spi::Facts facts;
    facts.set("version", sqlite3_libversion());
    facts.set("version_number", sqlite3_libversion_number());
    facts.set("in_memory", in_memory(path) ? 1 : 0);
    std::string doubts;
    for (const std::string& one : doubts_about(path))
        doubts += (doubts.empty() ? "" : "; ") + one;
    facts.set("doubts", std::move(doubts));
    struct statvfs disk {};
    if (::statvfs(path.c_str(), &disk) == 0)
        facts.set("free_bytes", static_cast<long long>(disk.f_bavail * disk.f_frsize));
    struct stat log {};
    if (::stat((path + "-wal").c_str(), &log) == 0)
        facts.set("log_bytes", static_cast<long long>(log.st_size));
    Examination found;
    spi::judge(checks, facts, found.findings);
    found.capabilities = promised();
    if (facts.text("in_memory") == "1")
        found.capabilities.set(Capability::survives_server_crash, false);
    return found;
}

}  // namespace holdfast::sqlite
