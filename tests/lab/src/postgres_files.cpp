#include "postgres_files.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::lab::detail {
namespace {

namespace fs = std::filesystem;

/// Debian's package postgresql-common makes the first one; nobody is everywhere.
const passwd& user() {
    static const passwd found = [] {
        for (const char* name : {"postgres", "nobody"})
            if (const passwd* entry = ::getpwnam(name)) return *entry;
        throw LabError("there is neither a user postgres nor nobody to run PostgreSQL as");
    }();
    return found;
}

}  // namespace

std::string postgres_program(const std::string& name) {
    std::vector<fs::path> found;
    std::error_code none;
    for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
        const auto program = version.path() / "bin" / name;
        if (fs::exists(program, none)) found.push_back(program);
    }
    if (found.empty())
        throw LabError(name +
                       " is missing: apt install postgresql-15 (the lab starts its own "
                       "servers; the package's service is not needed)");
    return std::max_element(found.begin(), found.end())->string();
}

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

void make_cluster(const fs::path& target) {
    static std::mutex mutex;
    static TempDir* model = nullptr;
    {
        const std::lock_guard hold(mutex);
        if (model == nullptr) {
            auto made = std::make_unique<TempDir>();
            give_away(made->path());
            run_unprivileged({postgres_program("initdb"), "-D", *made / "data", "-A", "trust", "-U",
                              "postgres", "--no-sync", "-E", "UTF8", "--locale=C",
                              "--wal-segsize=1", "--no-instructions"});
            // In the model, so that no client ever meets a server without them.
            run_unprivileged(
                {"sh", "-c",
                 "printf 'CREATE ROLE holdfast LOGIN\\nCREATE DATABASE holdfast OWNER holdfast\\n'"
                 " | \"$0\" --single -F -D \"$1\" postgres",
                 postgres_program("postgres"), *made / "data"});
            static const std::unique_ptr<TempDir> keeper = std::move(made);
            model = keeper.get();
        }
    }
    fs::copy(*model / "data", target, fs::copy_options::recursive);
    fs::permissions(target, fs::perms::owner_all);
    give_away(target);
}

}  // namespace holdfast::lab::detail
