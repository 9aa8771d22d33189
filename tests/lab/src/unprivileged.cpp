#include "unprivileged.hpp"

#include <pwd.h>
#include <unistd.h>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::lab::detail {
namespace {

namespace fs = std::filesystem;

/// Debian's packages of servers make the first ones; nobody is everywhere.
const passwd& user() {
    static const passwd found = [] {
        for (const char* name : {"postgres", "mysql", "nobody"})
            if (const passwd* entry = ::getpwnam(name)) return *entry;
        throw LabError("there is no user postgres, mysql or nobody to run servers as");
    }();
    return found;
}

}  // namespace

std::vector<std::string> unprivileged(std::vector<std::string> argv) {
    if (::geteuid() != 0) return argv;
    std::vector<std::string> all{"setpriv", "--reuid=" + std::to_string(user().pw_uid),
                                 "--regid=" + std::to_string(user().pw_gid), "--clear-groups"};
    all.insert(all.end(), argv.begin(), argv.end());
    return all;
}

void give_away(const fs::path& path) {
    if (::geteuid() != 0) return;
    const auto one = [](const fs::path& p) {
        if (::lchown(p.c_str(), user().pw_uid, user().pw_gid) != 0)
            throw LabError("cannot change the owner of " + p.string());
    };
    one(path);
    if (!fs::is_directory(path)) return;
    for (const auto& entry : fs::recursive_directory_iterator(path))
        one(entry.path());
}

void run_unprivileged(const std::vector<std::string>& argv) {
    TempDir dir;
    ProcessOptions options;
    options.argv = unprivileged(argv);
    options.log = dir / "log";
    options.environment = {{"LC_ALL", "C.UTF-8"}};
    Process process(options);
    const auto ended = process.wait(std::chrono::seconds(120));
    if (!ended || ended->by_signal || ended->code != 0)
        throw LabError(process.command_line() + " failed:\n" + process.log_tail());
}

}  // namespace holdfast::lab::detail
