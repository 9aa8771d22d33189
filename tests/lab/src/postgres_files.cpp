#include "postgres_files.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab::detail {

namespace fs = std::filesystem;

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
