#include "rig.hpp"

#include <atomic>

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
    hf::Diagnostics words;
    hf::ClientOptions options;
    options.diagnostics = &words;
    options.events = std::move(events);
    auto client = hf::Client::open(query.empty() ? url : url + "?" + query, options);
    INFO(words.text());
    REQUIRE(client.has_value());
    return *client;
}

hf::Client open_here(const std::string& query) {
    return open(server().url(), query);
}

std::unique_ptr<hf::Lock> lock_of(const hf::Client& client, const std::string& name,
                                  const hf::LockOptions& options) {
    auto lock = client.make_lock(name, options);
    REQUIRE(lock.has_value());
    return std::move(*lock);
}

hf::Lease hold(hf::Lock& lock, hf::milliseconds wait) {
    hf::Diagnostics words;
    auto lease = lock.acquire({.wait = wait, .note = {}, .diagnostics = &words});
    INFO((lease ? std::string("held") : lease.error().message()) << ' ' << words.text());
    REQUIRE(lease.has_value());
    return std::move(*lease);
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
    lab::wait_until(
        [&] {
            return server().value("SELECT count(*) FROM holdfast_lease WHERE name = '" + name +
                                  "' AND owner IS NOT NULL AND expires > clock_timestamp()") == "0";
        },
        patience * 2s, name + " is free");
}

long long ms_since(boot_clock::time_point t) {
    return std::chrono::duration_cast<hf::milliseconds>(boot_clock::now() - t).count();
}

}  // namespace postgresql_tests
