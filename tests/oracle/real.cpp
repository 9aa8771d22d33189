// Backends in this process, or with real servers, whose clocks a shim moves.
#include <filesystem>

#include "clock.hpp"
#include "facts_of.hpp"
#include "holdfast/lab/mariadb_server.hpp"
#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "stage.hpp"

namespace oracle {
namespace {

namespace lab = hf::lab;

/// Servers of one backend, with clocks that can be moved.
struct Servers {
    explicit Servers(const std::string& backend) {
        if (backend == "memory") url = "memory:oracle";
        if (backend == "sqlite") url = "sqlite://" + (folder.path() / "locks.db").string();
        if (backend == "postgresql") {
            postgres.emplace(lab::PostgresServer::start({.environment = shimmed()}));
            url = postgres->url();
        }
        if (backend == "mysql") {
            mariadb.emplace(lab::MariadbServer::start({.environment = shimmed()}));
            url = mariadb->url();
        }
    }
    std::vector<std::pair<std::string, std::string>> shimmed() {
        const auto file = folder.path() / ("clock" + std::to_string(clocks.size()));
        clocks.push_back(std::make_unique<lab::WallClock>(file));
        // A SQL server is another user's.
        using std::filesystem::perms;
        constexpr auto add = std::filesystem::perm_options::add;
        std::filesystem::permissions(folder.path(), perms::others_exec, add);
        std::filesystem::permissions(file, perms::others_read, add);
        return clocks.back()->environment();
    }

    lab::TempDir folder;
    std::vector<std::unique_ptr<lab::WallClock>> clocks;
    std::optional<lab::PostgresServer> postgres;
    std::optional<lab::MariadbServer> mariadb;
    std::string url;
};

class Real final : public Stage {
public:
    explicit Real(const std::string& backend) : servers_(backend), facts_(facts_of(backend)) {
        open();
    }
    hf::Capabilities capabilities() const override { return ground_->capabilities(); }

    std::optional<Difference> play(const std::vector<Operation>& all, long, Tally& tally) override {
        try {
            return compare(all, "name/" + std::to_string(++names_), *ground_, facts_, pass_, tally);
        } catch (const Void&) {
            open();
            throw;
        }
    }

private:
    void open() {
        ground_.reset();
        ground_ = std::make_unique<Ground>(servers_.url);
    }

    Servers servers_;
    const suite::Facts& facts_;
    std::unique_ptr<Ground> ground_;
    const std::function<void(hf::milliseconds)> pass_ = [this](hf::milliseconds time) {
        pass(time, servers_.clocks);
    };
    long names_ = 0;
};

}  // namespace

const char* const backends = "memory|sqlite|postgresql|mysql";

std::unique_ptr<Stage> make_stage(const std::string& backend) {
    return std::make_unique<Real>(backend);
}

}  // namespace oracle
