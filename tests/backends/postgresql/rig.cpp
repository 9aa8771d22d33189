#include "rig.hpp"

#include <atomic>

#include "trial.hpp"

namespace postgresql_tests {

lab::PostgresServer& server() {
    static lab::PostgresServer one = lab::PostgresServer::start();
    return one;
}

std::string fresh(const std::string& what) {
    static std::atomic<int> next{0};
    return what + "-" + std::to_string(++next);
}

hf::Client open(const std::string& url, const std::string& query, hf::EventSink events) {
    return test_support::open(query.empty() ? url : url + "?" + query,
                              {.events = std::move(events)});
}

hf::Client open_here(const std::string& query) {
    return open(server().url(), query);
}

std::string refused(const hf::Client& client, const std::string& name, errc expected) {
    hf::Diagnostics words;
    const auto lease =
        lock_of(client, name)->acquire({.wait = 0ms, .note = {}, .diagnostics = &words});
    REQUIRE_FALSE(lease.has_value());
    INFO(lease.error().message() << ": " << words.text());
    CHECK(lease.error() == expected);
    return words.text();
}

void require_free(const std::string& name) {
    const auto free = [&] {
        return server().value("SELECT count(*) FROM holdfast_lease WHERE name = '" + name +
                              "' AND owner IS NOT NULL AND expires > clock_timestamp()") == "0";
    };
    for (test_support::Trial trial; trial.again();)
        trial.holds(lab::reached(free, 2s), 2s, name + " is free");
}

long long ms_since(boot_clock::time_point t) {
    return std::chrono::duration_cast<hf::milliseconds>(boot_clock::now() - t).count();
}

}  // namespace postgresql_tests
