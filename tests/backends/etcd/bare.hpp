// The backend, or parts of it, without core, so that a test says what is asked, and when.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <new>
#include <string>
#include <vector>

#include "backend.hpp"
#include "catch.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast::test {

struct NoEvents final : spi::BackendEvents {
    void wake(std::string_view) override {}
    void at_risk(std::string_view) override {}
    void lost(std::string_view, error_code) override {}
    void warn(std::string) override {
        if (no_memory) throw std::bad_alloc();
    }
    bool no_memory = false;  ///< for a warning
};

inline spi::Settings settings_of(const std::string& url) {
    Diagnostics d;
    const auto chosen = parse_url(url, spi::Registry::linked(), d);
    REQUIRE(chosen.has_value());
    return chosen->settings;
}

inline spi::Attempt attempt_at(std::string_view name, std::string_view owner) {
    spi::Attempt a;
    a.name = name;
    a.owner = owner;
    a.ttl = std::chrono::seconds(10);
    a.sent = boot_clock::now();
    a.deadline = a.sent + std::chrono::seconds(5);
    return a;
}

inline spi::Held held_of(const spi::Attempt& a) {
    spi::Held h;
    h.name = a.name;
    h.owner = a.owner;
    h.ttl = a.ttl;
    h.place = a.place;
    h.sent = boot_clock::now();
    h.deadline = h.sent + std::chrono::seconds(5);
    return h;
}

/// A backend in front of one host.
struct Bare {
    Bare(const std::string& host, const std::string& query)
        : backend(settings_of("etcd://" + host + "?" + query), {context.get_executor(), events}) {}

    /// An attempt of its own at "it", granted.
    spi::Held grant(std::string_view owner) {
        spi::Attempt a = attempt_at("it", owner);
        std::vector<spi::Attempt*> all{&a};
        run([&] { return backend.attempt(all); });
        REQUIRE(std::holds_alternative<spi::Attempt::Granted>(a.outcome));
        return held_of(a);
    }
    template <class Make>
    void run(Make make) {
        bool done = false;
        boost::asio::co_spawn(context, make(), [&](const std::exception_ptr&) { done = true; });
        context.restart();
        while (!done)
            context.run_one();
    }
    boost::asio::io_context context;
    NoEvents events;
    etcd::EtcdBackend backend;
};

}  // namespace holdfast::test
