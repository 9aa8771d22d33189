// Whom a client trusts: a table of others, a server without TLS. And what a server that forgets is
// said to promise.
#include <array>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>

#include "../sql/direct.hpp"
#include "../sql/mangle.hpp"
#include "holdfast/lab/temp_dir.hpp"

using namespace postgresql_tests;

namespace {

lab::PostgresServer& own() {
    static lab::PostgresServer one = lab::PostgresServer::start();
    return one;
}

std::string url_of(const std::string& role) {
    return "postgresql://" + role + "@127.0.0.1:" + std::to_string(own().port()) + "/holdfast";
}

/// Roles of their own for each test: a victim with a secret right, and somebody else.
struct Roles {
    const std::string victim = fresh("victim"), other = fresh("other"), group = fresh("group");
    const std::string schema = fresh("place");
    Roles() {
        own().sql("CREATE ROLE \"" + victim + "\" LOGIN; CREATE ROLE \"" + other +
                  "\" LOGIN; CREATE ROLE \"" + group + "\"; CREATE SCHEMA \"" + schema +
                  "\"; GRANT ALL ON SCHEMA \"" + schema + "\" TO PUBLIC");
    }
    std::string table() const { return "\"" + schema + "\".holdfast_lease"; }
    void make_table(const std::string& owner) const {
        hold(client("postgres"), "first").release();
        own().sql("ALTER TABLE " + table() + " OWNER TO \"" + owner +
                  "\"; GRANT SELECT, INSERT, "
                  "UPDATE, DELETE ON " +
                  table() + " TO PUBLIC");
    }
    hf::Client client(const std::string& role) const {
        return open(url_of(role), "ttl=60s&request_timeout=20s&schema=" + schema);
    }
};

}  // namespace

TEST_CASE("a table of another role runs nothing with our rights") {
    const Roles r;
    r.make_table(r.other);
    own().sql("CREATE FUNCTION \"" + r.schema +
              "\".take() RETURNS trigger LANGUAGE plpgsql AS $$ "
              "BEGIN EXECUTE 'ALTER ROLE \"" +
              r.other +
              "\" SUPERUSER'; RETURN NEW; END $$; "
              "CREATE TRIGGER take BEFORE UPDATE OR INSERT ON " +
              r.table() + " FOR EACH ROW EXECUTE FUNCTION \"" + r.schema + "\".take()");
    for (const std::string& who : {r.victim, std::string("postgres")}) {
        INFO(who);
        const auto words = refused(r.client(who), "N", errc::bad_config);
        CHECK_THAT(words, ContainsSubstring("belongs to the role " + r.other) &&
                              ContainsSubstring("ALTER TABLE holdfast_lease OWNER TO"));
    }
    CHECK(own().value("SELECT rolsuper FROM pg_roles WHERE rolname = '" + r.other + "'") == "f");
}

TEST_CASE("owners that may be trusted: oneself, a group, the database's owner, a superuser") {
    const Roles r;
    SECTION("oneself") {
        CHECK(hold(r.client(r.victim), "N").valid());
        CHECK(hold(r.client(r.victim), "N").valid());
    }
    SECTION("a group that it is a member of, and not one that it is not") {
        r.make_table(r.group);
        CHECK_THAT(refused(r.client(r.victim), "N", errc::bad_config), ContainsSubstring(r.group));
        own().sql("GRANT \"" + r.group + "\" TO \"" + r.victim + "\"");
        CHECK(hold(r.client(r.victim), "N").valid());
    }
    SECTION("the owner of the database, but not with a superuser's rights") {
        r.make_table("holdfast");
        CHECK(hold(r.client(r.victim), "N").valid());
        CHECK_THAT(refused(r.client("postgres"), "N", errc::bad_config),
                   ContainsSubstring("holdfast"));
    }
    SECTION("a superuser") {
        r.make_table("postgres");
        CHECK(hold(r.client(r.victim), "N").valid());
        CHECK(hold(r.client("postgres"), "N").valid());
    }
}

TEST_CASE("a table with code of its own is refused, whoever owns it") {
    const Roles r;
    r.make_table("postgres");
    const auto in_place = [&](std::string sql) {
        for (auto at = sql.find('@'); at != sql.npos; at = sql.find('@', at + 1))
            sql.replace(at, 1, "\"" + r.schema + "\".");
        return sql;
    };
    own().sql(
        in_place("CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN "
                 "NEW; END $$; CREATE FUNCTION @f(text) RETURNS text LANGUAGE sql IMMUTABLE "
                 "AS 'SELECT $1'; CREATE DOMAIN @d AS text CHECK (@f(VALUE) <> '')"));
    const auto [change, undo, named] = GENERATE(table<std::string, std::string, std::string>({
        {"CREATE TRIGGER odd BEFORE UPDATE ON @holdfast_lease FOR EACH ROW EXECUTE FUNCTION @f()",
         "DROP TRIGGER odd ON @holdfast_lease", "trigger odd"},
        {"CREATE RULE odd AS ON DELETE TO @holdfast_lease DO ALSO NOTIFY x",
         "DROP RULE odd ON @holdfast_lease", "rule odd"},
        {"ALTER TABLE @holdfast_lease ADD CONSTRAINT odd CHECK (@f(name) <> '')",
         "ALTER TABLE @holdfast_lease DROP CONSTRAINT odd", "constraint odd"},
        {"CREATE INDEX odd ON @holdfast_lease ((@f(name)))", "DROP INDEX @odd", "index odd"},
        {"ALTER TABLE @holdfast_lease ALTER meta SET DEFAULT "
         "query_to_xml('SELECT 1', true, true, '')::text",
         "ALTER TABLE @holdfast_lease ALTER meta DROP DEFAULT", "default of column meta"},
        {"ALTER TABLE @holdfast_lease ADD odd text GENERATED ALWAYS AS (@f(name)) STORED",
         "ALTER TABLE @holdfast_lease DROP odd", "default of column odd"},
        {"ALTER TABLE @holdfast_lease ADD odd @d", "ALTER TABLE @holdfast_lease DROP odd",
         "type of column odd"},
        {"ALTER TABLE @holdfast_lease ENABLE ROW LEVEL SECURITY",
         "ALTER TABLE @holdfast_lease DISABLE ROW LEVEL SECURITY", "row security"},
    }));
    own().sql(in_place(change));
    CHECK_THAT(refused(r.client(r.victim), "N", errc::bad_config), ContainsSubstring(named));
    own().sql(in_place(undo));
    CHECK(hold(r.client(r.victim), "N").valid());
}

TEST_CASE("a schema may be named as a word of the statements' patterns") {
    for (const std::string name :
         {"KNOW", "SYNC", "TABLE", "PLACE", "NOW", "it's 'TABLE' @ \"x\""}) {
        INFO(name);
        std::string quoted = name, encoded;
        for (auto at = quoted.find('"'); at != quoted.npos; at = quoted.find('"', at + 2))
            quoted.insert(at, 1, '"');
        own().sql("CREATE SCHEMA \"" + quoted + "\" AUTHORIZATION holdfast");
        for (const char c : name) {
            constexpr auto* digits = "0123456789ABCDEF";
            const auto byte = static_cast<unsigned char>(c);
            encoded += {'%', digits[byte / 16], digits[byte % 16]};
        }
        const auto client = open(own().url(), "schema=" + encoded);
        auto lease = hold(client, "N");
        CHECK(lease.renew().has_value());
        CHECK(holders_of(client, "N") == 1);
        CHECK(lease.release() == ReleaseResult::released);
        CHECK(own().value("SELECT count(*) FROM \"" + quoted + "\".holdfast_lease") == "1");
    }
}

TEST_CASE("what forgets or may be replaced by what lags behind is class D") {
    const auto probed = [](const lab::PostgresServer& s) {
        hf::Diagnostics words;
        const auto found = open(s.url()).probe(&words);
        INFO(words.text());
        REQUIRE(found.has_value());
        return *found;
    };
    constexpr auto survives = hf::Capability::survives_server_crash;
    SECTION("settings of the server") {
        const auto solid = lab::PostgresServer::start({.fsync = true});
        CHECK(probed(solid).safety == hf::SafetyClass::b);
        CHECK(probed(solid).has(survives));
        solid.sql("ALTER TABLE holdfast_lease SET UNLOGGED");
        CHECK(probed(solid).safety == hf::SafetyClass::d);
        CHECK_FALSE(probed(solid).has(survives));
        solid.sql("ALTER TABLE holdfast_lease SET LOGGED");
        solid.sql("ALTER SYSTEM SET full_page_writes = off");
        solid.sql("SELECT pg_reload_conf()");
        lab::wait_until([&] { return solid.value("SHOW full_page_writes") == "off"; }, 5s,
                        "the setting is there");
        CHECK(probed(solid).safety == hf::SafetyClass::d);
        solid.sql("ALTER SYSTEM RESET full_page_writes");
        solid.sql("SELECT pg_reload_conf()");
        lab::wait_until([&] { return solid.value("SHOW full_page_writes") == "on"; }, 5s,
                        "the setting is there");
        CHECK(probed(solid).safety == hf::SafetyClass::b);
        const auto standby = solid.standby();
        CHECK(probed(solid).safety == hf::SafetyClass::d);
        CHECK(probed(solid).has(survives));
        solid.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        solid.sql("SELECT pg_reload_conf()");
        lab::wait_until([&] { return solid.value("SHOW synchronous_standby_names") == "*"; }, 5s,
                        "the setting is there");
        CHECK(probed(solid).safety == hf::SafetyClass::b);
        // A second one follows, and commits wait for one of them.
        const auto second = solid.standby();
        CHECK(probed(solid).safety == hf::SafetyClass::d);
        solid.sql("GRANT pg_monitor TO holdfast");
        lab::wait_until(
            [&] {
                return solid.value(
                           "SELECT bool_or(sync_state = 'potential') FROM pg_stat_replication") ==
                       "t";
            },
            10s, "the second standby is connected");
        CHECK(probed(solid).safety == hf::SafetyClass::d);
        solid.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 2 (*)'");
        solid.sql("SELECT pg_reload_conf()");
        lab::wait_until(
            [&] {
                return solid.value(
                           "SELECT count(*) FROM pg_stat_replication WHERE sync_state = "
                           "'quorum'") == "2";
            },
            5s, "commits wait for both");
        CHECK(probed(solid).safety == hf::SafetyClass::b);
    }
    SECTION("fsync") {
        CHECK(probed(own()).safety == hf::SafetyClass::d);
    }
}

namespace {

struct Environment {
    Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Environment() { ::unsetenv(name_); }
    const char* name_;
};

/// What a server at that address hears first of a client with a password: it says that it has no
/// TLS, and then asks for the password in clear.
std::string heard_at(const std::string& address, const std::string& query, std::string* words) {
    std::mutex mutex;
    std::string heard;
    std::size_t first = 0;  // the connection that said something first
    const auto talk = [&](Tcp::socket& client, std::size_t number) {
        std::array<char, 512> buffer{};
        for (const std::string_view answer :
             {std::string_view("N"), std::string_view("R\0\0\0\10\0\0\0\3", 9),
              std::string_view()}) {
            const auto n = client.read_some(boost::asio::buffer(buffer));
            {
                const std::lock_guard hold(mutex);
                if (first == 0) first = number;
                if (first == number) heard.append(buffer.data(), n);
            }
            boost::asio::write(client, boost::asio::buffer(answer));
        }
    };
    {
        const Acceptor server(talk, address);
        *words = refused(open("postgresql://app:s3cret@" + address + ":" +
                                  std::to_string(server.port()) + "/app",
                              "request_timeout=1s" + query),
                         "N", errc::unavailable);
    }
    return heard;
}

}  // namespace

TEST_CASE("PGSSLMODE and PGCHANNELBINDING count: nothing is said to a server without TLS") {
    std::string words;
    SECTION("PGSSLMODE") {
        const Environment tls("PGSSLMODE", "require");
        CHECK(heard_at("127.0.0.1", "", &words).size() == 8);  // the question for TLS
        CHECK_THAT(words, ContainsSubstring("SSL"));
        CHECK_THAT(heard_at("127.0.0.1", "&sslmode=prefer", &words), ContainsSubstring("s3cret"));
    }
    SECTION("PGCHANNELBINDING") {
        const Environment bind("PGCHANNELBINDING", "require");
        const auto heard = heard_at("127.0.0.1", "", &words);
        CHECK(heard.size() > 8);
        CHECK(heard.find("s3cret") == heard.npos);
    }
    SECTION("neither, on this machine") {
        CHECK_THAT(heard_at("127.0.0.1", "", &words), ContainsSubstring("s3cret"));
    }
}

TEST_CASE("to another machine TLS is required unless somebody says otherwise") {
    const std::string address = test_support::outer_address();
    if (address.empty()) return;  // without a network there is no other machine
    std::string words;
    CHECK(heard_at(address, "", &words).size() == 8);
    CHECK_THAT(words, ContainsSubstring("sslmode=prefer"));
    CHECK_THAT(heard_at(address, "&sslmode=prefer", &words), ContainsSubstring("s3cret"));
    {
        const lab::TempDir dir;
        const std::string file = dir / "services";
        std::ofstream(file) << "[app]\nconnect_timeout=5\n[clear]\nsslmode=disable\n";
        const Environment services("PGSERVICEFILE", file.c_str());
        const Environment silent("PGSERVICE", "app");  // says nothing of TLS
        CHECK(heard_at(address, "", &words).size() == 8);
        const Environment says("PGSERVICE", "clear");
        CHECK_THAT(heard_at(address, "", &words), ContainsSubstring("application_name"));
    }
    {
        const Environment tls("PGSSLMODE", "prefer");  // libpq's default is no choice
        CHECK(heard_at(address, "", &words).size() == 8);
    }
    const Environment tls("PGSSLMODE", "disable");
    CHECK_THAT(heard_at(address, "", &words), ContainsSubstring("application_name"));
}

TEST_CASE("PGGSSENCMODE counts where the URL says nothing") {
    const auto asked = [](const std::string& query) {
        std::string mode;
        const Direct direct(server().url() + query);
        for (const auto& [option, value] : direct.shared->options.libpq)
            if (option == "gssencmode") mode = value;
        return mode;
    };
    CHECK(asked("") == "disable");
    const Environment gss("PGGSSENCMODE", "prefer");
    CHECK(asked("").empty());  // libpq reads it
    CHECK(asked("?gssencmode=disable") == "disable");
}

TEST_CASE("an address that libpq would take from its environment in a socket's place is refused") {
    const auto opens = [](const char* url) {
        hf::Diagnostics words;
        const auto client = hf::Client::open(url, {.diagnostics = &words});
        if (client) return true;
        CHECK(client.error() == errc::bad_config);
        CHECK_THAT(words.text(), ContainsSubstring("PGHOSTADDR"));
        return false;
    };
    const char* const by_socket = "postgresql:///app?socket=/nowhere";
    const char* const by_host = "postgresql://127.0.0.1/app";  // the URL's address counts
    CHECK(opens(by_socket));
    {
        const Environment address("PGHOSTADDR", "192.0.2.1");
        CHECK_FALSE(opens(by_socket));
        CHECK(opens(by_host));
    }
    const lab::TempDir dir;
    const std::string file = dir / "services";
    std::ofstream(file) << "[elsewhere]\nhostaddr=192.0.2.1\n[app]\nconnect_timeout=5\n";
    const Environment services("PGSERVICEFILE", file.c_str());
    {
        const Environment service("PGSERVICE", "elsewhere");
        CHECK_FALSE(opens(by_socket));
        CHECK(opens(by_host));
    }
    const Environment service("PGSERVICE", "app");
    CHECK(opens(by_socket));
}

TEST_CASE("both ends look after a connection that is idle") {
    const auto client = open_here("keepalive=20s");
    hold(client, fresh("idle")).release();
    const auto watched = [](const char* file) {
        // local, remote, state, queues, timer: 02 is that of keepalives, in hundredths of seconds.
        std::ifstream in(file);
        std::string line, port = "0000";
        std::snprintf(port.data(), port.size() + 1, "%04X", server().port());
        std::pair<int, int> ends{};
        while (std::getline(in, line)) {
            std::istringstream words(line);
            std::string n, local, remote, state, queues, timer;
            words >> n >> local >> remote >> state >> queues >> timer;
            if (state != "01" || !timer.starts_with("02:")) continue;
            if (std::stoul(timer.substr(3), nullptr, 16) > 2000) continue;
            ends.first += local.ends_with(":" + port);
            ends.second += remote.ends_with(":" + port);
        }
        return ends;
    };
    CHECK(lab::reached([&] { return watched("/proc/net/tcp").first > 0; }));
    CHECK(watched("/proc/net/tcp").second > 0);
}
