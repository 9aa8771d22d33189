#include "mariadb_files.hpp"

#include <memory>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "spawn.hpp"
#include "text_file.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab::detail {
namespace {

namespace fs = std::filesystem;

/// In the model, so that no client ever meets a server without them. Only root of the Unix socket
/// stays of the users that the installation makes.
constexpr const char* users = R"(FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv WHERE NOT (User = 'mariadb.sys' OR User = 'root' AND Host = 'localhost');
FLUSH PRIVILEGES;
CREATE DATABASE holdfast CHARACTER SET utf8mb4;
CREATE USER holdfast@'%';
GRANT ALL ON holdfast.* TO holdfast@'%';
)";

std::unique_ptr<TempDir> make_model() {
    auto made = std::make_unique<TempDir>();
    write_text(*made / "users.sql", users);
    give_away(made->path());
    // Nobody but the owner of the folder reaches the socket, so root needs no password.
    run_unprivileged({mariadb_program("mariadb-install-db"), "--no-defaults",
                      "--datadir=" + (*made / "data").string(),
                      // A server that starts deletes the temporary files of others there.
                      "--tmpdir=" + made->path().string(),
                      "--auth-root-authentication-method=normal", "--skip-test-db",
                      "--skip-name-resolve", "--extra-file=" + (*made / "users.sql").string(),
                      "--innodb-log-file-size=8M", "--innodb-flush-method=nosync"});
    return made;
}

}  // namespace

std::string mariadb_program(const std::string& name) {
    auto program = find_program(name);
    if (program.empty()) throw LabError(name + " is missing: apt install mariadb-server-core");
    return program;
}

void make_mariadb_data(const fs::path& target, const fs::path& from) {
    const auto model = [] {
        static const std::unique_ptr<TempDir> made = make_model();
        return *made / "data";
    };
    fs::copy(from.empty() ? model() : from, target, fs::copy_options::recursive);
    fs::permissions(target, fs::perms::owner_all);
    give_away(target);
}

}  // namespace holdfast::lab::detail
