// A primary is killed under waiters, and a standby takes over, again and again.
#include "crowd.hpp"

using namespace postgresql_tests;

namespace {

void synchronous(int times) {
    auto servers = lab::PostgresServers::start();
    Series series({servers.url()});
    series.fail_over(servers, times);
    series.require_sound(series.end("synchronous standbys"));
}

}  // namespace

TEST_CASE("switchover: with synchronous standbys no grant is lost, and waiters wait on") {
    synchronous(2);
}

TEST_CASE("switchover: 20 primaries die under 50 waiters, with synchronous standbys",
          "[.][switchover]") {
    synchronous(20);
}

TEST_CASE("switchover: 20 primaries die under 50 waiters, with standbys that are behind",
          "[.][switchover]") {
    auto servers = lab::PostgresServers::start({.synchronous = false});
    Series series({servers.url()});
    series.fail_over(servers, 20, true);
    const auto verdict = series.end("standbys behind");
    INFO(verdict.text());
    // What class D admits, and nothing else: two holders, and a holder of whom nothing is known.
    CHECK(verdict.count(history::Trouble::token_order) == 0);
    CHECK(verdict.count(history::Trouble::token_repeated) == 0);
    CHECK(verdict.count(history::Trouble::token_missing) == 0);
    CHECK(verdict.count(history::Gravity::damage) == 0);
    CHECK(verdict.figures.granted > 20 * 20);
}
