// The guardian by itself: what it does with a deadline that moves. The rest of it is tested through
// the command, by test_guardian.py.
#include "guardian.hpp"

#include "catch.hpp"

using namespace holdfast;
using namespace holdfast::cli;
using namespace std::chrono_literals;

TEST_CASE("the guardian acts in time on a deadline that has come nearer", "[cli][guardian]") {
    GuardianPlan plan;
    plan.path = "/bin/sleep";
    plan.argv = {"sleep", "100"};
    ::sigemptyset(&plan.mask);
    plan.grace = 1s;
    plan.margin = 1s;
    DeadlineFile deadline;
    deadline.set_until(boot_clock::now() + 60s);
    Guardian guardian(plan, deadline);
    REQUIRE(guardian.go({}, false));
    REQUIRE(guardian.receive().value().kind == Report::started);
    const auto until = boot_clock::now() + 4s;
    deadline.set_until(until);
    guardian.send_signal(0);
    const Report report = guardian.receive().value();
    CHECK(report.kind == Report::ending);
    CHECK(report.number == static_cast<std::int32_t>(End::deadline));
    CHECK(boot_clock::now() < until);
    CHECK(guardian.receive().value().kind == Report::exited);
    CHECK(guardian.receive().value().kind == Report::gone);
}
