// Who makes the table, when many need it at once, and what is said when it cannot be made.
#include <future>

#include "direct.hpp"

using namespace postgresql_tests;

TEST_CASE("clients that find no table at the same moment all get one") {
    auto own = lab::PostgresServer::start();
    const auto lock_once = [&](int i) {
        return open(own.url(), "request_timeout=10s")
            .make_lock("N" + std::to_string(i))
            .value()
            ->acquire()
            .has_value();
    };
    for (int round = 0; round < 10; ++round) {
        own.sql("DROP TABLE IF EXISTS holdfast_lease");
        std::vector<std::future<bool>> all;
        for (int i = 0; i < 8; ++i)
            all.push_back(std::async(std::launch::async, lock_once, i));
        for (auto& one : all)
            CHECK(one.get());
    }
}

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
