// TLS: what is checked of the server, what a server that refuses the client is reported as, on the
// engine's connections and on lanes, and a lane that reads what is no answer.
#include <fstream>

#include "cap.hpp"
#include "catch.hpp"
#include "holdfast/client.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "resp/errors.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
using holdfast::lab::TempDir;
using holdfast::lab::TlsFiles;
using test_support::cap;

namespace {

struct Secured {
    static RedisServer start() {
        holdfast::lab::RedisOptions options;
        options.tls = true;
        options.config = {"bind 127.0.0.1 127.0.0.2"};
        return RedisServer::start(options);
    }
    RedisServer server = start();
    const std::string ca = "tls_ca_file=" + server.ca_file().string();
    const std::string port = std::to_string(server.port());
    /// The authority of the server's certificate.
    const TlsFiles& files() const { return server.tls_files(); }
    long long connections() {
        return std::stoll(server.info("stats")["total_connections_received"]);
    }
};

std::string of_client(const TlsFiles& own) {
    return "&tls_cert_file=" + own.cert.string() + "&tls_key_file=" + own.key.string();
}

/// There is no session with this server, and both the engine and a lane say why.
void refused(const std::string& url, const std::string& query, const char* words) {
    Rig rig(url, query);
    auto lane = rig.backend->open_lane();
    Try by_engine("a"), by_lane("a");
    rig.attempt(by_engine);
    attempt(*lane, by_lane);
    for (const Try* t : {&by_engine, &by_lane}) {
        INFO(t->a.detail);
        CHECK(t->error() == holdfast::resp::make(holdfast::resp::Error::tls));
        CHECK(t->error() == errc::unavailable);
        CHECK_THAT(t->a.detail, ContainsSubstring(words));
        CHECK_THAT(t->a.detail, ContainsSubstring(url));
    }
}

}  // namespace

TEST_CASE("TLS: good, by the engine and by a lane") {
    Secured s;
    Rig rig(s.server.url(), s.ca), other(s.server.url(), s.ca);
    auto lane = rig.backend->open_lane();
    Try t("a"), w("a", 10s, true);
    attempt(*lane, t);
    REQUIRE(t.granted());
    REQUIRE(other.attempt(w).busy());
    CHECK(release(*lane, t) == ReleaseResult::released);
    other.until([&] { return other.woken(w); }, "told over TLS");
    CHECK(other.attempt(w).granted());
}

TEST_CASE(
    "TLS: a lane keeps its connection over pauses, whatever the server sends beside answers") {
    Secured s;
    // From 1.3 on a server sends tickets for later sessions when it likes.
    const char* const protocol = GENERATE("TLSv1.3", "TLSv1.2");
    INFO(protocol);
    REQUIRE(s.server.cli({"CONFIG", "SET", "tls-protocols", protocol}).is_ok());
    Rig rig(s.server.url(), s.ca);
    auto lane = rig.backend->open_lane();
    const auto cycle = [&] {
        Try t("a");
        attempt(*lane, t);
        REQUIRE(t.granted());
        REQUIRE(release(*lane, t) == ReleaseResult::released);
    };
    cycle();
    const auto before = s.connections();
    for (int i = 0; i < 2; ++i) {
        // After a pause it looks whether the server has closed the connection.
        const auto over = boot_clock::now() + 150ms;
        holdfast::lab::wait_until([&] { return boot_clock::now() >= over; }, 5s, "the pause");
        cycle();
    }
    CHECK(s.connections() == before + 1);  // the one that counts them
}

TEST_CASE("TLS: the name in the certificate") {
    Secured s;
    Rig by_name("rediss://localhost:" + s.port, s.ca);
    Try t("a");
    CHECK(by_name.attempt(t).granted());
    CHECK(by_name.release(t) == ReleaseResult::released);

    const std::string elsewhere = "rediss://127.0.0.2:" + s.port;
    refused("rediss://127.1:" + s.port, s.ca, "the certificate is not for the host 127.1");
    refused(elsewhere, s.ca, "not for the host 127.0.0.2");
    refused(elsewhere, s.ca + "&tls_server_name=cache.example", "not for the host cache.example");
    for (const char* name : {"127.0.0.1", "localhost"}) {
        INFO(name);
        Rig rig(elsewhere, s.ca + "&tls_server_name=" + name);
        auto lane = rig.backend->open_lane();
        Try u("a");
        attempt(*lane, u);
        CHECK(u.granted());
        CHECK(rig.release(u) == ReleaseResult::released);
    }
}

TEST_CASE("TLS: a server that is not to be trusted") {
    Secured s;
    const TempDir dir, old;
    const auto foreign = holdfast::lab::make_tls_files(dir.path());
    refused(s.server.url(), "tls_ca_file=" + foreign.ca.string(),
            "tls_ca_file must have the authority");
    Rig careless(s.server.url(), "tls_verify=no");
    Try t("a");
    CHECK(careless.attempt(t).granted());
    CHECK_THROWS(Rig(s.server.url(), "tls_ca_file=/nonexistent/ca.pem"));

    const auto serve = [&](const holdfast::lab::CertificateOptions& o) {
        const auto files = holdfast::lab::make_certificate(s.files(), old.path(), o);
        REQUIRE(s.server
                    .cli({"CONFIG", "SET", "tls-cert-file", files.cert.string(), "tls-key-file",
                          files.key.string()})
                    .is_ok());
    };
    serve({.until = "20210101000000Z"});
    refused(s.server.url(), s.ca, "certificate has expired");
    serve({.from = "20480101000000Z"});
    refused(s.server.url(), s.ca, "not yet valid");
    serve({.usages = "clientAuth"});
    refused(s.server.url(), s.ca, "serverAuth");
}

TEST_CASE("TLS: a port without TLS, and TLS where it is not wanted") {
    Secured s;
    const auto clear = RedisServer::start();
    Rig silent("rediss://127.0.0.1:" + std::to_string(clear.port()), s.ca);
    Try t("a"), u("a");
    silent.attempt(t, 200ms);
    CHECK(t.error() == errc::unavailable);
    CHECK_THAT(t.a.detail, ContainsSubstring("as of a port without TLS"));
    Rig rig("redis://127.0.0.1:" + s.port);
    auto lane = rig.backend->open_lane();
    attempt(*lane, u);
    CHECK_THAT(u.a.detail, ContainsSubstring("as of a port with TLS (rediss://)"));
    rig.attempt(u);
    CHECK(u.error() == errc::unavailable);
    CHECK_THAT(u.a.detail, ContainsSubstring("as of a port with TLS (rediss://)"));
    CHECK_THAT(u.a.detail, ContainsSubstring("redis://127.0.0.1:" + s.port));
}

TEST_CASE("TLS: a connection that ends anywhere in the handshake is no matter of certificates") {
    using holdfast::lab::Direction;
    Secured s;
    REQUIRE(s.server.cli({"CONFIG", "SET", "tls-auth-clients", "yes"}).is_ok());
    holdfast::lab::Proxy proxy(s.server.port());
    const auto attempt_by = [&](bool lane, Try& t) {
        {
            Rig rig("rediss://127.0.0.1:" + std::to_string(proxy.port()),
                    s.ca + of_client(s.files()));
            if (lane)
                attempt(*rig.backend->open_lane(), t);
            else
                rig.attempt(t);
        }
        // What the end of this connection still says is not to be cut in place of the next one's.
        holdfast::lab::wait_until([&] { return proxy.counters().connections_open == 0; }, cap(10s),
                                  "the connection is gone");
    };
    Try first("first");
    attempt_by(true, first);  // which takes more bytes, since the server has no script yet
    for (const bool lane : {false, true}) {
        Try whole(lane ? "lane" : "engine");
        proxy.record();
        attempt_by(lane, whole);
        REQUIRE(whole.granted());
        constexpr std::size_t last = 100;  // of the grant, and the end of the session
        const auto bytes = proxy.recorded(Direction::to_client).size();
        for (std::size_t n = 0; n + last < bytes; n += 101) {
            INFO(n << " of " << bytes << (lane ? " by a lane" : " by the engine"));
            Try t(std::to_string(n) + (lane ? "l" : "e"));
            proxy.cut_after(Direction::to_client, n);
            attempt_by(lane, t);
            proxy.heal();
            INFO(t.a.detail);
            CHECK(t.error() == holdfast::resp::make(holdfast::resp::Error::closed));
        }
    }
}

TEST_CASE("TLS: a server that wants a certificate of the client") {
    Secured s;
    REQUIRE(s.server.cli({"CONFIG", "SET", "tls-auth-clients", "yes"}).is_ok());
    const char* const protocol = GENERATE("TLSv1.3", "TLSv1.2");
    INFO(protocol);
    REQUIRE(s.server.cli({"CONFIG", "SET", "tls-protocols", protocol}).is_ok());
    refused(s.server.url(), s.ca, "set tls_cert_file and tls_key_file");
    Rig rig(s.server.url(), s.ca + of_client(s.files()));
    Try t("a");
    CHECK(rig.attempt(t).granted());

    const TempDir dir;
    const auto with = [&](const holdfast::lab::CertificateOptions& o) {
        return s.ca + of_client(holdfast::lab::make_certificate(s.files(), dir.path(), o));
    };
    refused(s.server.url(), with({.usages = "serverAuth"}), "it lacks clientAuth");
    refused(s.server.url(), with({.until = "20210101000000Z"}), "it has expired");
    refused(s.server.url(), with({.from = "20480101000000Z"}), "it is not valid yet");
}

TEST_CASE("TLS: an encrypted private key is refused, and no pass phrase is asked for") {
    const TempDir dir;
    const auto files = holdfast::lab::make_tls_files(dir.path());
    holdfast::lab::ProcessOptions openssl;
    openssl.argv = {"openssl",  "pkey",   "-in",  files.key.string(),          "-aes256",
                    "-passout", "pass:x", "-out", (dir / "encrypted").string()};
    openssl.log = dir / "log";
    CHECK(holdfast::lab::Process(openssl).wait(10s)->code == 0);
    for (const std::string url :
         {"rediss://a", "rediss+sentinel://a,b,c/m", "rediss+cluster://a,b"}) {
        INFO(url);
        holdfast::Diagnostics words;
        const auto opened =
            holdfast::Client::open(url + "?tls_cert_file=" + files.cert.string() +
                                       "&tls_key_file=" + (dir / "encrypted").string(),
                                   {.diagnostics = &words});
        CHECK(opened.error() == errc::bad_config);
        CHECK_THAT(words.text(), ContainsSubstring("it is encrypted"));
    }
}
