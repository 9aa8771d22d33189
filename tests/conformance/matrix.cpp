// What each backend has to promise, whatever else it declares: a promise that goes missing is a
// failing test, and not a smaller product. That what is declared holds is what the other cases
// assert.
#include <map>
#include <vector>

#include "suite.hpp"

using namespace suite;

namespace {

using C = Capability;

struct Required {
    std::vector<Capability> must;
    std::vector<Capability> never;  ///< what nobody may believe of it
};

const std::vector<Capability> everywhere{C::fencing, C::renewal, C::inspect, C::list,
                                         C::break_lock};

Required with(std::vector<Capability> more, std::vector<Capability> never = {}) {
    more.insert(more.end(), everywhere.begin(), everywhere.end());
    return {std::move(more), std::move(never)};
}

const std::map<std::string, Required>& matrix() {
    static const std::map<std::string, Required> all{
        {"memory", with({C::fifo, C::notified, C::previous_holder}, {C::cross_process})},
        {"sqlite", with({C::previous_holder, C::cross_process}, {C::cross_host})},
        {"postgresql", with({C::notified, C::previous_holder, C::cross_process, C::cross_host})},
        {"redis",
         with({C::fifo, C::notified, C::previous_holder, C::cross_process, C::cross_host})},
        {"redlock",
         with({C::cross_process, C::cross_host}, {C::fifo, C::notified, C::previous_holder})},
        {"zookeeper", with({C::fifo, C::notified, C::cross_process, C::cross_host})},
        // Runs with robust=yes.
        {"zookeeper-3", with({C::fifo, C::notified, C::previous_holder, C::cross_process,
                              C::cross_host, C::survives_failover})},
    };
    return all;
}

}  // namespace

TEST_CASE("the required matrix: what has to be promised is declared and found", "[basics]") {
    const auto row = matrix().find(backend().name());
    if (row == matrix().end()) return;  // a variant that gives something up, by name
    const auto client = open();
    const auto found = client.probe();
    REQUIRE(found.has_value());
    for (const Capability c : row->second.must) {
        INFO(hf::to_string(c));
        CHECK(has(c));
        CHECK(found->has(c));
    }
    for (const Capability c : row->second.never) {
        INFO(hf::to_string(c));
        CHECK_FALSE(has(c));
        CHECK_FALSE(found->has(c));
    }
}
