// The backend without core's engine: its loop runs only while a test lets it, so that a test can
// hold the client still, or look at it between any two of its steps.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/owner.hpp"
#include "queue_node.hpp"
#include "rig.hpp"

namespace zookeeper_tests {

namespace spi = holdfast::spi;

/// One acquisition, with everything that it owns.
struct Try {
    explicit Try(std::string lock, hf::milliseconds ttl, bool queue = false)
        : name(std::move(lock)), owner(spi::make_owner("test")) {
        a.name = name;
        a.owner = owner;
        a.ttl = ttl;
        a.queue = queue;
    }
    Try(const Try&) = delete;
    Try& operator=(const Try&) = delete;
    template <class Outcome>
    bool is() const {
        return done && std::holds_alternative<Outcome>(a.outcome);
    }
    bool granted() const { return is<spi::Attempt::Granted>(); }
    holdfast::zookeeper::QueueNode& node() const {
        return *std::static_pointer_cast<holdfast::zookeeper::QueueNode>(a.place);
    }

    const std::string name, owner;
    spi::Attempt a;
    bool done = false;
};

class Rig {
public:
    explicit Rig(const std::string& url) {
        hf::Diagnostics d;
        const auto chosen = hf::parse_url(url, spi::Registry::linked(), d);
        INFO(d.text());
        REQUIRE(chosen.has_value());
        backend = chosen->backend->make(chosen->settings, spi::Context{io.get_executor(), events});
    }
    ~Rig() {
        if (std::uncaught_exceptions() > 0) {
            // What verbs under way write to is gone: a test that fails must not end in a crash.
            static_cast<void>(backend.release());
            return;
        }
        bool done = false;
        start(backend->close(), done);
        static_cast<void>(reached([&] { return done; }));
    }

    /// Lets the loop run until it is so.
    bool reached(const std::function<bool()>& so, hf::milliseconds cap = 20s) {
        return lab::reached(
            [&] {
                io.restart();
                io.run_for(1ms);
                return so();
            },
            cap);
    }
    void until(const std::function<bool()>& so, const char* what) {
        INFO(what);
        REQUIRE(reached(so));
    }
    bool stays_true(const std::function<bool()>& so, hf::milliseconds time) {
        return !reached([&] { return !so(); }, time);
    }

    void start(Try& t, hf::milliseconds request_time) {
        t.a.sent = hf::boot_clock::now();
        t.a.deadline = t.a.sent + request_time;
        t.done = false;
        items_ = {&t.a};
        start(backend->attempt(items_), t.done);
    }
    void attempt(Try& t, hf::milliseconds request_time = 5s) {
        start(t, request_time);
        until([&] { return t.done; }, "the attempt ends");
    }
    hf::error_code withdraw(Try& t, hf::milliseconds request_time = 5s) {
        t.a.sent = hf::boot_clock::now();
        t.a.deadline = t.a.sent + request_time;
        bool done = false;
        items_ = {&t.a};
        start(backend->withdraw(items_), done);
        until([&] { return done; }, "the withdrawal ends");
        return t.a.withdrawal;
    }
    hf::ReleaseResult release(Try& t) {
        spi::Held h;
        h.name = t.name;
        h.owner = t.owner;
        h.ttl = t.a.ttl;
        h.place = t.a.place;
        h.sent = hf::boot_clock::now();
        h.deadline = h.sent + 5s;
        release(h);
        return h.released;
    }
    void release(spi::Held& h) { run(h, &spi::Backend::release, "the release ends"); }
    void renew(spi::Held& h) { run(h, &spi::Backend::renew, "the renewal ends"); }
    /// Acquires and releases.
    void use(const std::string& name, hf::milliseconds ttl) {
        Try t(name, ttl);
        attempt(t);
        INFO(t.a.detail);
        REQUIRE(t.granted());
        REQUIRE(release(t) == hf::ReleaseResult::released);
    }

    struct Events final : spi::BackendEvents {
        void wake(std::string_view) override {}
        void at_risk(std::string_view) override {}
        void lost(std::string_view, hf::error_code) override {}
        void warn(std::string text) override { warnings.push_back(std::move(text)); }
        std::vector<std::string> warnings;
    };
    boost::asio::io_context io;
    Events events;
    std::unique_ptr<spi::Backend> backend;

private:
    void run(spi::Held& h, spi::awaitable<void> (spi::Backend::*verb)(std::span<spi::Held* const>),
             const char* what) {
        bool done = false;
        held_ = {&h};
        start((*backend.*verb)(held_), done);
        until([&] { return done; }, what);
    }
    void start(spi::awaitable<void> verb, bool& done) {
        boost::asio::co_spawn(io, std::move(verb), [&done](const std::exception_ptr& e) {
            done = true;
            if (e) std::rethrow_exception(e);
        });
    }
    std::vector<spi::Attempt*> items_;
    std::vector<spi::Held*> held_;
};

}  // namespace zookeeper_tests
