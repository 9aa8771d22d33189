#include "rig.hpp"

#include "trial.hpp"

namespace postgresql_tests {

lab::PostgresServer& server() {
    static lab::PostgresServer one = lab::PostgresServer::start();
    return one;
}

hf::Client open_here(const std::string& query) {
    return open(server().url(), query);
}

void require_free(const std::string& name) {
    const auto free = [&] {
        return server().value("SELECT count(*) FROM holdfast_lease WHERE name = '" + name +
                              "' AND owner IS NOT NULL AND expires > clock_timestamp()") == "0";
    };
    for (test_support::Trial trial; trial.again();)
        trial.holds(lab::reached(free, 2s), 2s, name + " is free");
}

}  // namespace postgresql_tests
