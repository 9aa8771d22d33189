// What an administrator may have set, and what else may be in the place of our table.
#include <vector>

#include "../sql/rig.hpp"

using namespace mysql_tests;

namespace {

/// Every verb on every kind, and tokens that grow.
void use_everything(const hf::Client& client) {
    // In GBK its last two bytes and a backslash between them are a character and the end of a text.
    const std::string name = "\xe4\xbd\xa0'";
    hf::FencingToken last;
    for (int i = 0; i < 2; ++i) {
        auto lease = hold(client, name);
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        CHECK(lock_of(client, name)->try_acquire().error() == errc::contended);
        CHECK(client.list("").value().size() == 1);
        CHECK(lease.renew().has_value());
        CHECK(lease.release() == ReleaseResult::released);
    }
    CHECK(hold(client, name).previous_holder() == PreviousHolder::released);
    const auto shared = lock_of(client, "R", {.kind = hf::Kind::shared_mutex});
    auto one = shared->acquire_shared(), two = shared->acquire_shared();
    REQUIRE(one.has_value());
    REQUIRE(two.has_value());
    CHECK(holders_of(client, "R") == 2);
    CHECK(one->renew().has_value());
    CHECK(client.break_lock("R", {.now = true}).value().size() == 2);
    CHECK(shared->acquire({.wait = 5s}).has_value());
}

}  // namespace

TEST_CASE("settings of the administrator's change nothing that a lock does") {
    static lab::MariadbServer own = lab::MariadbServer::start();
    using Settings = std::vector<std::pair<std::string, std::string>>;
    const Settings settings = GENERATE(values<Settings>({
        {{"sql_mode", "'SIMULTANEOUS_ASSIGNMENT'"}},
        {{"sql_mode", "'ORACLE,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'"}},
        {{"sql_mode", "''"}},
        {{"time_zone", "'+05:30'"}},
        {{"autocommit", "0"}},
        {{"completion_type", "'CHAIN'"}},
        {{"tx_isolation", "'SERIALIZABLE'"}},
        {{"tx_isolation", "'READ-UNCOMMITTED'"}},
        {{"tx_read_only", "1"}},
        {{"innodb_lock_wait_timeout", "100"}},
        {{"sql_select_limit", "0"}},
        {{"sql_big_selects", "0"}, {"max_join_size", "1"}},
        {{"group_concat_max_len", "4"}},
        {{"sql_safe_updates", "1"}},
        {{"init_connect", "'SET sql_mode = \"SIMULTANEOUS_ASSIGNMENT\"'"}},
        {{"init_connect", "'SET NAMES gbk'"}},
        {{"character_set_server", "'utf16'"}, {"collation_server", "'utf16_general_ci'"}},
        {{"default_storage_engine", "'MyISAM'"}},
    }));
    INFO(settings[0].first << " = " << settings[0].second);
    struct Restored {
        ~Restored() {
            for (const auto& [name, value] : all)
                own.sql("SET GLOBAL " + name + " = DEFAULT");
        }
        const Settings& all;
    } const restored{settings};
    own.sql("DROP TABLE IF EXISTS holdfast_lease");
    for (const auto& [name, value] : settings)
        own.sql("SET GLOBAL " + name + " = " + value);
    use_everything(open(own.url(), "ttl=30s&request_timeout=5s"));
}

TEST_CASE("a server that ignores which characters its clients have changes nothing") {
    const auto own = lab::MariadbServer::start(
        {.config = {"skip_character_set_client_handshake", "character_set_server = gbk"}});
    use_everything(open(own.url(), "ttl=30s&request_timeout=5s"));
}

TEST_CASE("a connection that was idle for too long is made again") {
    auto own = lab::MariadbServer::start();
    own.sql("SET GLOBAL wait_timeout = 1");
    const auto client = open(own.url(), "ttl=30s");
    auto lease = hold(client, "N");
    const auto gone = [&] { return sessions(own) == 0; };
    lab::wait_until(gone, 10s, "the server ends the session");
    CHECK(lease.renew().has_value());
    lab::wait_until(gone, 10s, "the server ends the session");
    CHECK(lease.release() == ReleaseResult::released);
    CHECK(client.stats().renewals_failed == 0);
}

TEST_CASE("a server whose SYSDATE() is NOW() is refused") {
    const auto own = lab::MariadbServer::start({.config = {"sysdate_is_now"}});
    CHECK_THAT(refused(open(own.url()), "N", errc::bad_config),
               ContainsSubstring("sysdate-is-now"));
}

TEST_CASE("a binary log of statements: it serves, or says what to set") {
    const auto own =
        lab::MariadbServer::start({.binary_log = true, .config = {"binlog_format = STATEMENT"}});
    hf::Diagnostics words;
    const auto lease = lock_of(open(own.url()), "N")->acquire({.wait = 0ms, .diagnostics = &words});
    if (!lease) CHECK_THAT(words.text(), ContainsSubstring("binlog_format"));
}

TEST_CASE("a view in the table's place, or another storage engine's table, is refused") {
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url());
    own.sql("CREATE VIEW holdfast_lease AS SELECT 1 AS name");
    (void)refused(client, "N", errc::kind_mismatch);
    own.sql("DROP VIEW holdfast_lease");
    CHECK(hold(client, "N").valid());
    own.sql("ALTER TABLE holdfast_lease ENGINE = Aria");
    CHECK_THAT(refused(open(own.url()), "N", errc::kind_mismatch),
               ContainsSubstring("ENGINE = InnoDB"));
    own.sql("ALTER TABLE holdfast_lease ENGINE = InnoDB");
    CHECK(hold(open(own.url()), "N").valid());
}

TEST_CASE("a table that has lost its primary key is refused, and says what to do") {
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url());
    hold(client, "old").release();
    own.sql("ALTER TABLE holdfast_lease DROP PRIMARY KEY");
    own.sql("KILL USER holdfast");
    CHECK_THAT(refused(client, "new", errc::bad_config), ContainsSubstring("ADD PRIMARY KEY"));
    CHECK_THAT(refused(open(own.url()), "old", errc::bad_config),
               ContainsSubstring("ADD PRIMARY KEY"));
    own.sql("ALTER TABLE holdfast_lease ADD PRIMARY KEY (name, slot)");
    hold(client, "new").release();
    hold(client, "old").release();
}
