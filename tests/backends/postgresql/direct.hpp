#pragma once
#include "connection.hpp"
#include "holdfast/spi/config.hpp"
#include "rig.hpp"
#include "steps.hpp"

namespace postgresql_tests {

namespace pg = holdfast::postgresql;

/// The backend's own connection, without core.
struct Direct {
    explicit Direct(const std::string& url) {
        hf::Diagnostics words;
        auto chosen = hf::parse_url(url, hf::spi::Registry::linked(), words);
        INFO(words.text());
        REQUIRE(chosen.has_value());
        shared = std::make_shared<pg::Shared>(chosen->settings, io.get_executor());
        connection = std::make_unique<pg::Connection>(shared, pg::Connection::Resolve::yes);
    }
    ~Direct() {
        connection.reset();
        shared->watchdog->close();
    }
    pg::Step step(pg::Step::Kind kind, const std::string& key, const std::string& owner) const {
        pg::Step s;
        s.kind = kind;
        s.key = key;
        s.owner = owner;
        s.deadline = boot_clock::now() + 5s;
        s.ttl = 10s;
        return s;
    }
    pg::Step& run(pg::Step& s) {
        pg::Step* const one = &s;
        pg::run_steps(*connection, {&one, 1});
        return s;
    }
    boost::asio::io_context io;
    std::shared_ptr<pg::Shared> shared;
    std::unique_ptr<pg::Connection> connection;
};

}  // namespace postgresql_tests
