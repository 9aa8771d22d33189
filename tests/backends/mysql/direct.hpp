// The backend's own connection, without core.
#pragma once
#include "connection.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/registry.hpp"
#include "rig.hpp"
#include "steps.hpp"

namespace mysql_tests {

namespace my = holdfast::mysql;

struct Direct {
    explicit Direct(const std::string& url) {
        hf::Diagnostics words;
        auto chosen = hf::parse_url(url, hf::spi::Registry::linked(), words);
        INFO(words.text());
        REQUIRE(chosen.has_value());
        shared = std::make_shared<my::Shared>(chosen->settings, io.get_executor());
        connection = std::make_unique<my::Connection>(shared, my::Connection::Resolve::yes);
    }
    ~Direct() {
        connection.reset();
        shared->watchdog->close();
    }
    my::Step step(my::Step::Kind kind, const std::string& key, const std::string& owner) const {
        my::Step s;
        s.kind = kind;
        s.key = key;
        s.owner = owner;
        s.deadline = boot_clock::now() + 5s;
        s.ttl = 10s;
        return s;
    }
    my::Step& run(my::Step& s) {
        my::Step* const one = &s;
        my::run_steps(*connection, {&one, 1});
        return s;
    }
    boost::asio::io_context io;
    std::shared_ptr<my::Shared> shared;
    std::unique_ptr<my::Connection> connection;
};

inline bool granted(const my::Step& s) {
    return std::holds_alternative<hf::spi::Attempt::Granted>(s.outcome);
}

}  // namespace mysql_tests
