// Who makes the table, when many need it at once, and what is said when it cannot be made.

#include "../sql/rig.hpp"

using namespace postgresql_tests;

TEST_CASE("a type in the table's place: the server's words are told") {
    auto own = lab::PostgresServer::start();
    own.sql("CREATE TYPE holdfast_lease AS ENUM ('none')");
    hf::Diagnostics words;
    const auto refused = open(own.url()).make_lock("N").value()->acquire({.diagnostics = &words});
    CHECK_FALSE(refused.has_value());
    CHECK_THAT(words.text(), ContainsSubstring("type \"holdfast_lease\" already exists"));
}

TEST_CASE("a table that has lost its primary key makes no new name, and says what to do") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url()), other = open(own.url());
    hold(client, "old").release();
    own.sql("ALTER TABLE holdfast_lease DROP CONSTRAINT holdfast_lease_pkey");
    for (const auto* c : {&client, &other})
        CHECK_THAT(refused(*c, "new", errc::bad_config), ContainsSubstring("ADD PRIMARY KEY"));
    CHECK(own.value("SELECT count(*) FROM holdfast_lease WHERE name = 'new'") == "0");
    hf::Diagnostics words;
    const auto reader = lock_of(client, "new reader", {.kind = hf::Kind::shared_mutex})
                            ->acquire_shared({.wait = 0ms, .diagnostics = &words});
    CHECK(reader.error() == errc::bad_config);
    hold(client, "old").release();
    own.sql("ALTER TABLE holdfast_lease ADD PRIMARY KEY (name, slot)");
    hold(client, "new").release();
}
