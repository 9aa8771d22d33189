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
