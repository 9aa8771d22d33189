// Access to the members: TLS, certificates of clients, users and their passwords.
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/temp_dir.hpp>
#include <holdfast/lab/tls_files.hpp>
#include <holdfast/lab/wait_until.hpp>

#include "catch.hpp"
#include "client.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using namespace std::chrono_literals;
using test_support::waiters_of;

namespace {

struct Tried {
    hf::error_code why;
    std::string words;
};

/// One acquisition and its release.
Tried cycle(const hf::Client& client, const std::string& name = "access") {
    hf::Diagnostics words;
    hf::AcquireOptions options;
    options.wait = 5s;
    options.diagnostics = &words;
    auto lease = client.make_lock(name).value()->acquire(options);
    if (!lease) return {lease.error(), words.text()};
    CHECK(lease->release() == hf::ReleaseResult::released);
    return {};
}

Tried cycle(const std::string& url) {
    return cycle(hf::Client::open(url).value());
}

std::string port_of(const lab::EtcdServers& s) {
    return std::to_string(s.port());
}

/// `app` may write below /holdfast/, and nothing else.
void enable_users(const lab::EtcdServers& s) {
    s.ctl({"user", "add", "root:of-all"});
    s.ctl({"user", "grant-role", "root", "root"});
    s.ctl({"user", "add", "app:first-word"});
    s.ctl({"role", "add", "locks"});
    s.ctl({"role", "grant-permission", "locks", "readwrite", "--prefix=true", "/holdfast/"});
    s.ctl({"user", "grant-role", "app", "locks"});
    // Reads all of it by two ranges, and writes a part.
    s.ctl({"user", "add", "reader:first-word"});
    s.ctl({"role", "add", "part"});
    s.ctl({"role", "grant-permission", "part", "read", "/hold", "/holdfast/m"});
    s.ctl({"role", "grant-permission", "part", "readwrite", "--from-key=true", "/holdfast/m"});
    s.ctl({"user", "grant-role", "reader", "part"});
    s.ctl({"auth", "enable"});
}

/// What doctor says of the user's rights.
std::string rights(const std::string& url) {
    const auto found = hf::Client::open(url).value().examine();
    REQUIRE(found.has_value());
    for (const hf::Finding& f : found->findings)
        if (f.id == "etcd.rights") return std::string(to_string(f.verdict)) + ": " + f.found;
    return "";
}

}  // namespace

TEST_CASE("TLS: certificates and host names are checked") {
    auto server = lab::EtcdServers::start({.tls = true});
    const auto ca = "?request_timeout=2s&tls_ca_file=" + server.ca_file().string();
    REQUIRE(server.url().starts_with("etcds://"));
    CHECK_FALSE(cycle(server.url() + ca).why);
    CHECK_FALSE(cycle("etcds://localhost:" + port_of(server) + ca).why);

    const auto other_name = cycle("etcds://127.1:" + port_of(server) + ca);
    CHECK(other_name.why == errc::unavailable);
    CHECK_THAT(other_name.words, ContainsSubstring("the certificate is not for the host 127.1"));

    const lab::TempDir directory;
    const auto foreign = lab::make_tls_files(directory.path());
    const auto untrusted = cycle(server.url() + "?tls_ca_file=" + foreign.ca.string());
    CHECK(untrusted.why == errc::unavailable);
    CHECK_THAT(untrusted.words, ContainsSubstring("certificate"));
    CHECK_FALSE(cycle(server.url() + "?tls_verify=no").why);
    CHECK_FALSE(cycle("etcds://127.1:" + port_of(server) + ca + "&tls_server_name=localhost").why);

    CHECK(cycle("etcd://127.0.0.1:" + port_of(server)).why == errc::unavailable);
    const auto none = hf::Client::open(server.url() + "?tls_ca_file=/nonexistent/ca.pem");
    REQUIRE_FALSE(none.has_value());
    CHECK(none.error() == errc::bad_config);
}

TEST_CASE("TLS: a waiter is notified, and a member wants to see the client's certificate") {
    auto server = lab::EtcdServers::start({.tls = true, .client_certificates = true});
    const auto ca = server.url() + "?request_timeout=2s&tls_ca_file=" + server.ca_file().string();
    const auto without = cycle(ca);
    CHECK(without.why == errc::unavailable);
    CHECK_THAT(without.words, ContainsSubstring("set tls_cert_file and tls_key_file"));
    const auto url = ca + "&tls_cert_file=" + server.cert_file().string() +
                     "&tls_key_file=" + server.key_file().string();
    const auto client = hf::Client::open(url).value(), other = hf::Client::open(url).value();
    auto held = client.make_lock("access").value()->acquire().value();
    std::atomic<bool> granted{false};
    other.make_lock("access").value()->async_acquire({.wait = 30s},
                                                     [&](hf::error_code ec, hf::Lease) {
                                                         CHECK_FALSE(ec);
                                                         granted = true;
                                                     });
    lab::wait_until([&] { return waiters_of(client, "access") == 1; }, 10s, "in line");
    CHECK(held.release() == hf::ReleaseResult::released);
    lab::wait_until([&] { return granted.load(); }, 10s, "the waiter is granted");
}

TEST_CASE("TLS: where no user is named, the common name of the client's certificate is the user") {
    auto server = lab::EtcdServers::start({.tls = true, .client_certificates = true});
    enable_users(server);
    const auto as_root = [&](std::vector<std::string> command) {
        command.insert(command.begin(), {"--user", "root:of-all"});
        server.ctl(command);
    };
    as_root({"user", "add", "127.0.0.1:no-matter"});
    const auto url = server.url() + "?request_timeout=2s&tls_ca_file=" + server.ca_file().string() +
                     "&tls_cert_file=" + server.cert_file().string() +
                     "&tls_key_file=" + server.key_file().string();
    CHECK(cycle(url).why == errc::denied);
    as_root({"user", "grant-role", "127.0.0.1", "locks"});
    CHECK_FALSE(cycle(url).why);
}

TEST_CASE("users: no user, another password and a missing permission are denied") {
    auto server = lab::EtcdServers::start({});
    enable_users(server);
    const auto where = "127.0.0.1:" + port_of(server);
    const auto anonymous = cycle("etcd://" + where);
    CHECK(anonymous.why == errc::denied);
    CHECK(hf::Client::open("etcd://" + where).value().probe().error() == errc::denied);
    CHECK_THAT(anonymous.words, ContainsSubstring("user"));
    const auto wrong = cycle("etcd://app:third-word@" + where);
    CHECK(wrong.why == errc::denied);
    CHECK_THAT(wrong.words, !ContainsSubstring("third-word"));
    const auto elsewhere = cycle("etcd://app:first-word@" + where + "/other");
    CHECK(elsewhere.why == errc::denied);
    CHECK_FALSE(cycle("etcd://app:first-word@" + where).why);
    const auto client = hf::Client::open("etcd://app:first-word@" + where).value();
    CHECK(client.probe().has_value());
    CHECK(client.list("").has_value());
    CHECK(rights("etcd://app:first-word@" + where) == "sound: ");
    CHECK(rights("etcd://root:of-all@" + where) == "sound: ");
    CHECK(rights("etcd://reader:first-word@" + where) ==
          "slow: this user may not write below /holdfast/");
}

TEST_CASE(
    "users: a lease outlives the token of its user, and a new password is read from the file") {
    auto server = lab::EtcdServers::start({});
    enable_users(server);
    const lab::TempDir directory;
    const auto file = directory / "password";
    std::ofstream(file) << "first-word\n";
    std::filesystem::permissions(
        file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const auto client = hf::Client::open("etcd://app@127.0.0.1:" + port_of(server) +
                                         "?ttl=12s&password_file=" + file.string())
                            .value();
    auto held = client.make_lock("long").value()->acquire().value();
    const auto as_root = [&](std::vector<std::string> command) {
        command.insert(command.begin(), {"--user", "root:of-all"});
        server.ctl(command);
    };
    as_root({"user", "delete", "app"});
    as_root({"user", "add", "app:second-word"});
    as_root({"user", "grant-role", "app", "locks"});
    std::ofstream(file) << "second-word\n";
    // Tokens are kept in memory.
    server.restart();
    server.wait_ready();
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals > renewals; }, 10s, "a renewal");
    CHECK(held.valid());
    CHECK(held.release() == hf::ReleaseResult::released);
    CHECK_FALSE(cycle(client).why);
}

TEST_CASE("users: where authentication is not enabled a user is told so, and let in") {
    auto server = lab::EtcdServers::start({});
    std::mutex mutex;
    std::string told;
    hf::ClientOptions options;
    options.events = [&](const hf::Event& e) {
        const std::lock_guard hold(mutex);
        if (e.kind == hf::Event::Kind::warning) told += e.text;
    };
    const auto client =
        hf::Client::open("etcd://app:first-word@127.0.0.1:" + port_of(server), options).value();
    CHECK_FALSE(cycle(client).why);
    lab::wait_until(
        [&] {
            const std::lock_guard hold(mutex);
            return told.find("authentication is not enabled") != told.npos;
        },
        5s, "a warning");
    // As soon as it is, the user has to show a password.
    enable_users(server);
    CHECK_FALSE(cycle(client).why);
}
