// A measurement that a stall spoiled is made again; a wrong answer is not.
#include <stdexcept>
#include "catch.hpp"

#include "measure/tries.hpp"

using namespace holdfast::bench;

namespace {

/// Throws the first `bad` times, after it has added a row with this status.
struct Spoiled {
    Rows rows = {Row{}};
    int bad, made = 0;
    Status status = Status::ok;

    Tries measure(bool stopped = false) {
        return try_to_measure(
            rows,
            [this] {
                rows.emplace_back().status = status;
                if (++made <= bad) throw std::runtime_error("try " + std::to_string(made));
            },
            [stopped] { return stopped; });
    }
};

}  // namespace

TEST_CASE("a spoiled measurement is begun again, and only its last rows count") {
    Spoiled twice{.bad = 2};
    CHECK(twice.measure() == Tries{"try 1", "try 2"});
    CHECK(twice.made == 3);
    CHECK(twice.rows.size() == 2);
    Spoiled never{.bad = 0};
    CHECK(never.measure().empty());
    CHECK(never.rows.size() == 2);
}

TEST_CASE("three times at most") {
    Spoiled always{.bad = 9};
    CHECK(always.measure().size() == most_tries);
    CHECK(always.made == 3);
    CHECK(always.rows.size() == 1);
    Spoiled stopped{.bad = 9};
    CHECK(stopped.measure(true).empty());
    CHECK(stopped.made == 0);
}

TEST_CASE("a violation stands, and is not measured away") {
    Spoiled violated{.bad = 1, .status = Status::violated};
    CHECK(violated.measure().size() == most_tries);
    CHECK(violated.made == 1);
    CHECK(violated.rows.size() == 2);
    CHECK(violated.rows.back().status == Status::violated);
}
