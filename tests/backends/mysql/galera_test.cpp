// Two nodes of a Galera cluster: what makes it class D happens here, with the safest settings.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "../sql/rig.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"

using namespace mysql_tests;

namespace {

namespace fs = std::filesystem;

/// Of the second node, which joins with the same data as the first one: only the position has to be
/// handed over.
constexpr const char* state_transfer = R"(#!/bin/sh
role= position=
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --gtid) position=$2; shift ;;
    esac
    shift
done
if [ "$role" = joiner ]; then
    echo "ready 127.0.0.1:1/lab"
    cat "$HOLDFAST_TEST_POSITION"
else
    echo "$position" > "$HOLDFAST_TEST_POSITION"
    echo "done $position"
fi
)";

constexpr const char* provider = "/usr/lib/galera/libgalera_smm.so";

class Cluster {
public:
    Cluster() {
        INFO("apt install galera-4");
        REQUIRE(fs::exists(provider));
        fs::permissions(files_.path(), fs::perms(0755));
        std::ofstream(script()) << state_transfer;
        fs::permissions(script(), fs::perms(0755));
        REQUIRE(::mkfifo(position().c_str(), 0666) == 0);
        fs::permissions(position(), fs::perms(0666));
        // The nodes begin where this one ended.
        auto seed = lab::MariadbServer::start(options({}, {}));
        seed.process().signal(SIGTERM);
        REQUIRE(seed.process().wait(lab::default_cap));
        const auto port = lab::free_port();
        first.emplace(lab::MariadbServer::start(options(seed.data_directory(), port.text())));
        second.emplace(lab::MariadbServer::start(
            options(seed.data_directory(), {}, "127.0.0.1:" + port.text())));
        CHECK(status(*first, "wsrep_cluster_size") == 2);
    }

    static long status(const lab::MariadbServer& node, const std::string& name) {
        return std::stol(node.sql("SHOW GLOBAL STATUS LIKE '" + name + "'").at(0).at(1));
    }

    std::optional<lab::MariadbServer> first, second;

private:
    fs::path script() const { return files_ / "wsrep_sst_lab"; }
    fs::path position() const { return files_ / "position"; }
    lab::MariadbOptions options(const fs::path& data, const std::string& port,
                                const std::string& others = {}) const {
        const auto any = lab::free_port(), transfer = lab::free_port();
        const std::string at = "127.0.0.1:";
        lab::MariadbOptions o;
        o.fsync = true;
        o.data = data;
        o.environment = {{"PATH", files_.path().string() + ":/usr/sbin:/usr/bin:/sbin:/bin"},
                         {"HOLDFAST_TEST_POSITION", position().string()}};
        o.config = {"wsrep_on = ON",
                    "wsrep_provider = " + std::string(provider),
                    "wsrep_cluster_address = gcomm://" + others,
                    "wsrep_node_address = 127.0.0.1",
                    "wsrep_sst_method = lab",
                    "wsrep_provider_options = \"gmcast.listen_addr=tcp://" + at +
                        (port.empty() ? any.text() : port) + ";ist.recv_addr=" + at +
                        transfer.text() + ";gcache.size=8M\"",
                    "binlog_format = ROW",
                    "innodb_autoinc_lock_mode = 2"};
        return o;
    }

    lab::TempDir files_;
};

}  // namespace

TEST_CASE("Galera is class D: a grant that one node has answered is lost", "[.][galera]") {
    Cluster cluster;
    const auto client = open(cluster.second->url(), "ttl=60s");
    hf::Diagnostics words;
    const auto found = client.examine(&words);
    REQUIRE(found.has_value());
    CHECK(std::any_of(found->findings.begin(), found->findings.end(), [](const hf::Finding& f) {
        return f.id == "mysql.galera" && f.verdict == hf::Verdict::unsafe;
    }));
    hold(client, "N").release();
    lab::wait_until([&] { return row("COUNT(*)", "N", *cluster.first) == "1"; }, cap(10s),
                    "the first node has it");
    // It receives what the other one commits, and applies it when it may write again.
    Foreign backup(*cluster.first, "FLUSH TABLES WITH READ LOCK", 300s);
    auto lease = hold(client, "N");
    CHECK(is_free("N", *cluster.first));
    cluster.first->kill();
    cluster.second->kill();
    backup.go();
    // As an operator says whose data the cluster goes on with.
    const auto state = cluster.first->data_directory() / "grastate.dat";
    std::ifstream in(state);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto at = text.find("safe_to_bootstrap: 0");
    REQUIRE(at != text.npos);
    std::ofstream(state) << text.replace(at, 20, "safe_to_bootstrap: 1");
    cluster.first->restart();
    const auto other = hold(open(cluster.first->url(), "ttl=60s"), "N", 20s);
    CHECK(other.valid());
    CHECK(lease.valid());
    WARN("token " << lease.fencing_token().value << ", then " << other.fencing_token().value
                  << ", and both are valid");
}

TEST_CASE("Galera: clients of two nodes in conflict", "[.][galera]") {
    Cluster cluster;
    struct {
        std::atomic<int> inside{0}, overlaps{0}, backwards{0}, doubts{0}, refused{0};
        std::atomic<std::uint64_t> last{0};
    } seen;
    std::atomic<int> granted[2]{};
    const auto until = boot_clock::now() + 8s;
    std::vector<std::thread> all;
    for (int i = 0; i < 6; ++i)
        all.emplace_back([&, node = i % 2] {
            const auto& server = node == 0 ? *cluster.first : *cluster.second;
            const auto client = open(server.url(), "ttl=10s&request_timeout=2s");
            const auto lock = lock_of(client, "N");
            while (boot_clock::now() < until) {
                auto lease = lock->acquire({.wait = 0ms});
                if (!lease && lease.error() == errc::in_doubt) ++seen.doubts;
                if (!lease && lease.error() == errc::unavailable) ++seen.refused;
                if (!lease) continue;
                ++granted[node];
                if (++seen.inside > 1) ++seen.overlaps;
                const auto token = lease->fencing_token().value;
                if (seen.last.exchange(token) >= token) ++seen.backwards;
                std::this_thread::yield();
                --seen.inside;
                (void)lease->release();
            }
        });
    for (auto& thread : all)
        thread.join();
    const auto conflicts = Cluster::status(*cluster.first, "wsrep_local_cert_failures") +
                           Cluster::status(*cluster.first, "wsrep_local_bf_aborts") +
                           Cluster::status(*cluster.second, "wsrep_local_cert_failures") +
                           Cluster::status(*cluster.second, "wsrep_local_bf_aborts");
    WARN(granted[0] << " and " << granted[1] << " grants, " << conflicts << " conflicts, "
                    << seen.overlaps << " overlaps, " << seen.backwards
                    << " tokens that went back, " << seen.doubts << " in doubt, " << seen.refused
                    << " unavailable");
    CHECK(granted[0] > 0);
    CHECK(granted[1] > 0);
    CHECK(conflicts > 0);
    // What it promises while no node fails, though no lock may rely on it.
    CHECK(seen.overlaps == 0);
}
