// The backend's own connection, without core.
#pragma once
#include <memory>
#include <string>
#include <variant>

#include "connection.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/registry.hpp"
#include "rig.hpp"
#include "steps.hpp"

namespace sql_tests {

struct Direct {
    explicit Direct(const std::string& url) {
        hf::Diagnostics words;
        auto chosen = hf::parse_url(url, hf::spi::Registry::linked(), words);
        INFO(words.text());
        REQUIRE(chosen.has_value());
        shared = std::make_shared<db::Shared>(chosen->settings, io.get_executor());
        connection = std::make_unique<db::Connection>(shared, db::Connection::Resolve::yes);
    }
    ~Direct() {
        connection.reset();
        shared->watchdog->close();
    }
    db::Step step(db::Step::Kind kind, const std::string& key, const std::string& owner) const {
        db::Step s;
        s.kind = kind;
        s.key = key;
        s.owner = owner;
        s.deadline = boot_clock::now() + 5s;
        s.ttl = 10s;
        return s;
    }
    db::Step& run(db::Step& s) {
        db::Step* const one = &s;
        db::run_steps(*connection, {&one, 1});
        return s;
    }
    boost::asio::io_context io;
    std::shared_ptr<db::Shared> shared;
    std::unique_ptr<db::Connection> connection;
};

inline bool granted(const db::Step& s) {
    return std::holds_alternative<hf::spi::Attempt::Granted>(s.outcome);
}

inline std::string owner(char letter) {
    return std::string(22, letter) + ".h.1";
}

inline const hf::spi::Units reader{1, hf::spi::Units::all, hf::Mode::shared};

}  // namespace sql_tests
