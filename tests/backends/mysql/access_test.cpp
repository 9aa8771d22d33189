// Who may come in, what is said to whom on the way, and what is missing where somebody may not.
#include <mutex>

#include "../sql/rig.hpp"
#include "hostile_server.hpp"

using namespace mysql_tests;

namespace {

/// What a server that could do TLS, or could not, hears of a client with a password.
struct Overheard {
    Overheard(const std::string& address, bool tls, const std::string& query, errc why)
        : server(
              [this, tls](Tcp::socket& s, std::size_t) {
                  const Hostile how{.login = {"\xfe" + std::string("mysql_clear_password") + '\0'},
                                    .introduction = {},
                                    .answer = ok(),
                                    .tls = tls};
                  serve(how, s, [this](const std::string& body) {
                      const std::lock_guard hold(mutex);
                      heard += body;
                  });
              },
              address) {
        words = refused(open("mysql://app:s3cret@" + address + ":" + std::to_string(server.port()) +
                             "/app?request_timeout=1s" + query),
                        "N", why);
    }
    std::string all() const {
        const std::lock_guard hold(mutex);
        return heard;
    }
    mutable std::mutex mutex;
    std::string heard, words;
    Acceptor server;
};

}  // namespace

TEST_CASE("rights that are missing are named, with the remedy") {
    auto own = lab::MariadbServer::start();
    own.sql("CREATE USER guest");
    const auto guest = url_of(own, "guest");
    const std::string grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO";
    SECTION("no rights on the database") {
        CHECK_THAT(refused(open(guest), "N", errc::denied), ContainsSubstring("guest"));
    }
    SECTION("no table, and no right to make it") {
        own.sql("GRANT SELECT ON holdfast.* TO guest");
        const auto words = refused(open(guest), "N", errc::denied);
        CHECK_THAT(words, ContainsSubstring("holdfast schema mysql"));
        CHECK_THAT(words, ContainsSubstring(grant));
    }
    SECTION("the table is there, and others may not use it") {
        hold(open(own.url()), "N").release();
        own.sql("GRANT SELECT ON holdfast.* TO guest");
        CHECK_THAT(refused(open(guest), "N", errc::denied), ContainsSubstring(grant));
        own.sql("GRANT UPDATE ON holdfast.holdfast_lease TO guest");
        CHECK(hold(open(guest), "N").valid());
        CHECK_THAT(refused(open(guest), "new", errc::denied), ContainsSubstring(grant));
        own.sql("GRANT INSERT ON holdfast.holdfast_lease TO guest");
        CHECK(hold(open(guest), "new").valid());  // DELETE is for the sweeper alone
    }
    SECTION("database, user, and an account that is locked") {
        CHECK_THAT(refused(open(url_of(own, "nobody")), "N", errc::denied),
                   ContainsSubstring("nobody"));
        own.sql("GRANT ALL ON *.* TO guest");
        const auto host = "127.0.0.1:" + std::to_string(own.port());
        CHECK_THAT(refused(open("mysql://guest@" + host + "/nowhere"), "N", errc::bad_config),
                   ContainsSubstring("nowhere"));
        own.sql("ALTER USER guest ACCOUNT LOCK");
        CHECK_THAT(refused(open(guest), "N", errc::denied), ContainsSubstring("locked"));
    }
    SECTION("a right that is taken away under a lease") {
        own.sql("GRANT ALL ON holdfast.* TO guest");
        const auto client = open(guest);
        auto lease = hold(client, "N");
        own.sql("REVOKE UPDATE ON holdfast.* FROM guest");
        CHECK_FALSE(lease.renew().has_value());
        CHECK(lease.valid());
        // A session keeps the rights on a database that it began with.
        own.sql("GRANT UPDATE ON holdfast.* TO guest");
        CHECK(lab::reached([&] { return lease.renew().has_value(); }, cap(5s)));
    }
}

TEST_CASE("passwords by file and environment, TLS, a Unix socket; never printed") {
    auto own = lab::MariadbServer::start({.password = "s3cret-w0rd", .tls = true});
    const auto url = own.url();
    const auto tls = "tls=on&tls_ca_file=" + own.ca_file().string();
    const lab::TempDir dir;
    let_in_by_password(own, tls, dir);
    const auto password = "&password_file=" + (dir / "right").string();
    // By a host name of the certificate, and one that it has not.
    const auto by_name = [&](const std::string& host) {
        return "mysql://holdfast@" + host + ":" + std::to_string(own.port()) + "/holdfast?" + tls +
               password + "&request_timeout=2s";
    };
    CHECK(hold(open(by_name("localhost")), "N").valid());
    CHECK_THAT(refused(open(by_name("127.1")), "N", errc::unavailable),
               ContainsSubstring("tls_verify"));
    // Without the certificate there is no way to know the server.
    const auto blind = refused(open(url, "tls=on" + password), "N", errc::unavailable);
    CHECK_THAT(blind, ContainsSubstring("tls_ca_file"));
    CHECK(blind.find("w0rd") == std::string::npos);
    CHECK(hold(open(url, "tls=on&tls_verify=no" + password), "N").valid());
    auto lease = hold(open("mysql://holdfast@/holdfast?socket=" + own.socket().string() + password),
                      "socket");
    CHECK(own.value("SELECT COUNT(*) > 0 FROM information_schema.processlist WHERE user = "
                    "'holdfast' AND host = 'localhost'") == "1");
}

TEST_CASE("a password is shown to no server that asks for it in clear text") {
    const Overheard here("127.0.0.1", false, "", errc::denied);
    CHECK_THAT(here.all(), ContainsSubstring("app"));  // the login came
    CHECK(here.all().find("s3cret") == std::string::npos);
}

TEST_CASE("to another machine TLS is required unless somebody says otherwise") {
    const std::string address = test_support::outer_address();
    if (address.empty()) return;  // without a network there is no other machine
    const Overheard without(address, false, "", errc::unavailable);
    CHECK(without.all().find("app") == std::string::npos);
    CHECK_THAT(without.words, ContainsSubstring("tls=off"));
    const Overheard with(address, true, "",
                         errc::unavailable);  // it says that it could, and then cannot
    CHECK(with.all().find("app") == std::string::npos);
    const Overheard off(address, false, "&tls=off", errc::denied);
    CHECK_THAT(off.all(), ContainsSubstring("app"));
    CHECK(off.all().find("s3cret") == std::string::npos);
}

TEST_CASE("a server that does not do TLS hears no statement where TLS was asked for") {
    std::mutex mutex;
    std::string heard;
    const Hostile how{.login = ok(), .introduction = {}, .answer = ok()};
    const Acceptor server([&](Tcp::socket& s, std::size_t) {
        serve(how, s, [&](const std::string& body) {
            const std::lock_guard hold(mutex);
            heard += body;
        });
    });
    for (const char* verify : {"yes", "no"}) {
        const auto url = "mysql://app:s3cret@127.0.0.1:" + std::to_string(server.port()) +
                         "/app?request_timeout=1s&tls=on&tls_verify=" + verify;
        CHECK_THAT(refused(open(url), "N", errc::unavailable), ContainsSubstring("TLS"));
        const std::lock_guard hold(mutex);
        CHECK(heard.find("time_zone") == std::string::npos);
    }
}

TEST_CASE("what a URL cannot mean is said") {
    const auto why = [](const std::string& url) {
        hf::Diagnostics words;
        CHECK(hf::Client::open(url, {.diagnostics = &words}).error() == errc::bad_config);
        return words.text();
    };
    CHECK_THAT(why("mysql://h/a/b"), ContainsSubstring("one database"));
    CHECK_THAT(why("mysql://h/a?tls=off&tls_verify=no"), ContainsSubstring("tls_verify"));
    CHECK_THAT(why("mysql://h/a?tls_cert_file=/x"), ContainsSubstring("tls_key_file"));
    CHECK_FALSE(why("mysql://h/a?sslmode=require").empty());
    CHECK(hf::Client::open("mariadb://h/a").has_value());
}
