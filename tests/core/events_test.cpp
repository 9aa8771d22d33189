// What a sink is told: how often, in which order, and when it is too slow.
#include "events.hpp"

#include <condition_variable>

#include "../support/catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "trial.hpp"

namespace hf = holdfast;
using Seen = hf::Event::Kind;

namespace {

/// A sink that can be stopped, and what it has been told.
class Log {
public:
    Log() : events_(std::make_shared<hf::Events>([this](const hf::Event& e) { take(e); }, pool_)) {}
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    ~Log() {
        go();
        pool_.stop(std::chrono::seconds(10));
    }
    hf::Events& events() { return *events_; }
    void stop() {
        const std::lock_guard hold(mutex_);
        stopped_ = true;
    }
    void go() {
        {
            const std::lock_guard hold(mutex_);
            stopped_ = false;
        }
        moves_.notify_all();
    }
    bool inside() {
        const std::lock_guard hold(mutex_);
        return inside_;
    }
    std::vector<hf::Event> told() {
        const std::lock_guard hold(mutex_);
        return told_;
    }
    void tell(Seen kind, const std::string& name, const std::string& text = {}) {
        hf::Event e;
        e.kind = kind, e.name = name, e.text = text;
        events_->tell(std::move(e));
    }
    /// Tells one last event and waits for it.
    std::vector<hf::Event> all() {
        const auto end = "the end " + std::to_string(++ends_);
        tell(Seen::recovered, end);
        REQUIRE(holdfast::lab::reached([&] {
            const std::lock_guard hold(mutex_);
            return !told_.empty() && told_.back().name == end;
        }));
        auto all = told();
        std::erase_if(all, [](const hf::Event& e) { return e.name.starts_with("the end "); });
        return all;
    }

private:
    void take(const hf::Event& e) {
        std::unique_lock hold(mutex_);
        inside_ = true;
        moves_.wait(hold, [&] { return !stopped_; });
        inside_ = false;
        told_.push_back(e);
    }

    std::mutex mutex_;
    std::condition_variable moves_;
    bool stopped_ = false, inside_ = false;
    int ends_ = 0;
    std::vector<hf::Event> told_;
    hf::CallbackPool pool_{[] {}};
    std::shared_ptr<hf::Events> events_;
};

}  // namespace

TEST_CASE("a sink that blocks costs bounded memory, and is told what it has missed", "[core]") {
    constexpr int many = 100'000, losses = 20'000;
    Log log;
    log.stop();
    log.tell(Seen::acquired, "first");
    REQUIRE(holdfast::lab::reached([&] { return log.inside(); }));
    for (int n = 0; n < losses; ++n)
        log.tell(Seen::lost, std::to_string(n));
    for (int n = 0; n < many; ++n)
        log.tell(n % 2 == 0 ? Seen::acquired : Seen::released, std::to_string(n));
    log.go();
    const auto told = log.all();

    CHECK(told.size() < losses + 10'000);
    std::uint64_t dropped = 0;
    std::vector<std::string> lost, others;
    for (const auto& e : told) {
        dropped += e.dropped;
        if (e.kind == Seen::warning)
            CHECK(e.text.starts_with(std::to_string(e.dropped) + " events were dropped, 0 "));
        else
            (e.kind == Seen::lost ? lost : others).push_back(e.name);
    }
    // Nothing is missed without a word, and no loss is missed for what comes every day.
    CHECK(told.size() - 1 + dropped == 1 + losses + many);
    REQUIRE(lost.size() == losses);
    CHECK(lost.front() == "0");
    CHECK(lost.back() == std::to_string(losses - 1));
    CHECK(told[0].name == "first");
    CHECK(told[1].dropped == dropped);  // before anything that came later
    CHECK(others.back() == std::to_string(many - 1));
}

TEST_CASE("losses without end are bounded, too, and counted", "[core]") {
    constexpr std::size_t more = 1'000;
    const std::size_t most = hf::Events::most[hf::Events::loss];
    Log log;
    log.stop();
    log.tell(Seen::acquired, "first");
    REQUIRE(holdfast::lab::reached([&] { return log.inside(); }));
    for (std::size_t n = 0; n < most + more; ++n)
        log.tell(Seen::lost, std::to_string(n));
    log.go();
    const auto told = log.all();
    REQUIRE(told.size() == 2 + most);
    CHECK(told[1].text == "1000 events were dropped, 1000 of them losses: the sink is too slow.");
    CHECK(told[2].name == std::to_string(more));
}

TEST_CASE("events of different weight come in the order in which they happened", "[core]") {
    Log log;
    log.stop();
    log.tell(Seen::acquired, "0");
    REQUIRE(holdfast::lab::reached([&] { return log.inside(); }));
    const std::vector kinds{Seen::acquired, Seen::at_risk,  Seen::lost, Seen::acquired,
                            Seen::in_doubt, Seen::released, Seen::lost};
    for (std::size_t n = 0; n < kinds.size(); ++n)
        log.tell(kinds[n], std::to_string(n + 1));
    log.go();
    const auto told = log.all();
    REQUIRE(told.size() == kinds.size() + 1);
    for (std::size_t n = 0; n < told.size(); ++n)
        CHECK(told[n].name == std::to_string(n));
}

TEST_CASE("waiting and at_risk are told once a second for a name, all else always", "[core]") {
    test_support::Trial& trial = test_support::this_trial();
    Log log;
    const auto start = hf::boot_clock::now();
    for (int n = 0; n < 5; ++n)
        for (const Seen kind : {Seen::waiting, Seen::at_risk, Seen::lost, Seen::recovered})
            for (const char* name : {"a", "b"})
                log.tell(kind, name);
    const auto told = log.all();
    if (!trial.within(hf::boot_clock::now() - start, std::chrono::seconds(1), "eighty events"))
        return;
    const auto times = [](const std::vector<hf::Event>& all, Seen kind, const std::string& name) {
        return std::count_if(all.begin(), all.end(),
                             [&](const hf::Event& e) { return e.kind == kind && e.name == name; });
    };
    for (const char* name : {"a", "b"}) {
        CHECK(times(told, Seen::waiting, name) == 1);
        CHECK(times(told, Seen::at_risk, name) == 1);
        CHECK(times(told, Seen::lost, name) == 5);
        CHECK(times(told, Seen::recovered, name) == 5);
    }
    // And again, when the second is over.
    REQUIRE(holdfast::lab::reached([&] {
        log.tell(Seen::at_risk, "a");
        return times(log.told(), Seen::at_risk, "a") == 2;
    }));
    CHECK(hf::boot_clock::now() - start >= std::chrono::seconds(1));
}

TEST_CASE("a warning is told once for its text, however many texts there are", "[core]") {
    Log log;
    for (int n = 0; n < 3; ++n)
        log.events().warn("the same");
    CHECK(log.all().size() == 1);
    for (int n = 0; n < 3'000; ++n)
        log.events().warn("text " + std::to_string(n));
    // What was said long ago may be said again: it is not remembered for ever.
    log.events().warn("the same");
    const auto told = log.all();
    CHECK(std::count_if(told.begin(), told.end(),
                        [](const auto& e) { return e.text == "the same"; }) == 2);
}

TEST_CASE("no escape of a server's reaches the terminal", "[core]") {
    const std::string evil =
        "\x1b]0;owned\x07 a\nb\tc \x7f \xc2\x9b"
        "31m \x9b \xe2\x80\xae"
        "kcol \xe2\x81\xa6 \xc3\xbc \xe2\x82\xac";
    const std::string shown = "?]0;owned? a b c ? ?31m ? ?kcol ? \xc3\xbc \xe2\x82\xac";
    Log log;
    log.tell(Seen::at_risk, "name", evil);
    log.events().warn(evil);
    log.events().warn(std::string(1'000'000, 'x'));
    const auto told = log.all();
    REQUIRE(told.size() == 3);
    CHECK(told[0].text == shown);
    CHECK(told[1].text == shown);
    CHECK(told[2].text == std::string(4096, 'x') + "...");
    hf::Diagnostics diagnostics;
    diagnostics.add(evil, evil, evil);
    CHECK(diagnostics.text() == shown + ": " + shown + "\n  " + shown);
}
