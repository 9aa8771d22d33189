// Readers, permits and names that stay closed: what is kept at the server and until when, who is
// granted together, what a mutex meets there, and what becomes of it when a key is taken away.
#include <utility>

#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "protocol/owner_state.hpp"
#include "protocol/scripts.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
using Renewal = spi::Held::Renewal;

namespace {

constexpr spi::Units reader{1, spi::Units::all, holdfast::Mode::shared};

spi::Units permits(std::uint32_t take, std::uint32_t of) {
    return {take, of, holdfast::Mode::exclusive};
}

/// A Try with units, of the lock "a".
struct Part : Try {
    explicit Part(spi::Units units, milliseconds ttl = 10s, bool queue = false)
        : Try("a", ttl, queue) {
        a.units = units;
    }
};

std::vector<std::string> keys_of_a() {
    return {"a", "{a}:hf:s", "{a}:hf:q", "{a}:hf:w", "{a}:hf:x", "{a}:hf:r"};
}

/// One script's call for the lock "a", as a client would send it.
std::vector<std::string> call(const holdfast::redis::Script& script,
                              const std::vector<std::string>& arguments) {
    std::vector<std::string> out{"EVAL", script.text(), "6"};
    for (const auto& part : {keys_of_a(), arguments})
        out.insert(out.end(), part.begin(), part.end());
    return out;
}

const std::string no_deadline = "9999999999999";

/// Puts a waiter into the line that is told by that channel.
void queue_up(RedisServer& server, const std::string& owner, const std::string& channel,
              const spi::Units& units) {
    const auto answer = server.cli(call(holdfast::redis::Scripts::all().enter_units,
                                        {channel, owner, "10000", "3000", "3000", no_deadline, "",
                                         std::to_string(units.take), std::to_string(units.of)}));
    REQUIRE(answer.elements.at(0).text.starts_with("q "));
}

/// From here on requests count what the protocol needs: scripts are known, and messages come.
void warm_up(RedisServer& server, Rig& rig) {
    for (const auto& [name, script] : holdfast::redis::checked_scripts())
        server.cli({"SCRIPT", "LOAD", script->text()});
    Try holder("warm"), waits("warm", 10s, true);
    REQUIRE(rig.attempt(holder).granted());
    REQUIRE(rig.attempt(waits).busy());
    CHECK(rig.withdraw(waits) == holdfast::error_code());
    CHECK(rig.release(holder) == ReleaseResult::released);
}

long long parts(RedisServer& server) {
    return server.cli({"ZCARD", "{a}:hf:r"}).integer;
}
long long left(RedisServer& server, const std::string& key = "a") {
    return server.cli({"PTTL", key}).integer;
}
std::string text(RedisServer& server, const std::string& key) {
    return server.cli({"GET", key}).text;
}

}  // namespace

TEST_CASE("units: the key of readers lives as long as the last of them, and no longer") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part brief(reader, 10s), longer(reader, 60s);
    REQUIRE(rig.attempt(brief).granted());
    CHECK(text(server, "a") == "hf:s:" + std::to_string(brief.token()));
    CHECK(text(server, "{a}:hf:s").starts_with("2:"));
    CHECK(left(server) <= 10'000);
    REQUIRE(rig.attempt(longer).granted());
    CHECK(longer.token() == brief.token());
    CHECK(left(server) > 50'000);
    CHECK(left(server, "{a}:hf:r") > left(server) - 1000);
    // The longest leaves first.
    CHECK(rig.release(longer) == ReleaseResult::released);
    CHECK(left(server) <= 10'000);
    CHECK(rig.renew(brief).renewal == Renewal::renewed);
    CHECK(rig.renew(longer).renewal == Renewal::lost);
    CHECK(rig.release(longer) == ReleaseResult::owned_by_other);
    CHECK(rig.release(brief) == ReleaseResult::released);
    CHECK(server.cli({"EXISTS", "a", "{a}:hf:r"}).integer == 0);
    CHECK(text(server, "{a}:hf:s").starts_with("1:"));
    CHECK(rig.release(brief) == ReleaseResult::already_expired);
}

TEST_CASE("units: readers whose key was taken away are lost, whoever comes after them") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part old(reader, 60s), next(reader, 10s), writer(spi::Units{});
    const bool foreign = GENERATE(false, true);
    INFO(foreign);
    REQUIRE(rig.attempt(old).granted());
    server.cli({"DEL", "a"});
    if (foreign) {
        CHECK(server.cli({"SET", "a", "theirs", "NX"}).is_ok());
        CHECK(rig.renew(old).renewal == Renewal::lost);
        CHECK(rig.attempt(next).busy());
        Part permit(permits(1, 5));
        CHECK(rig.attempt(permit).busy());  // whose it is cannot be seen
        server.cli({"DEL", "a"});
    }
    REQUIRE(rig.attempt(next).granted());
    CHECK(next.token() > old.token());
    CHECK(rig.renew(old).renewal == Renewal::lost);
    CHECK(rig.release(old) == ReleaseResult::owned_by_other);
    CHECK(parts(server) == 1);
    CHECK(rig.release(next) == ReleaseResult::released);
    REQUIRE(rig.attempt(writer).granted());
    CHECK(writer.token() > next.token());
}

TEST_CASE("units: a mutex asks with its units where it meets readers, and only there") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part r(reader, 10s), behind(reader, 10s, true);
    Try mutex("a", 10s), waits("a", 10s, true);
    warm_up(server, rig);
    std::uint64_t before = rig.backend->requests();
    const auto requests = [&] {
        const auto now = rig.backend->requests();
        return now - std::exchange(before, now);
    };
    REQUIRE(rig.attempt(r).granted());
    CHECK(requests() == 1);
    CHECK(rig.attempt(mutex).busy());
    CHECK(requests() == 2);
    CHECK(rig.attempt(waits).busy());
    CHECK(requests() == 2);
    CHECK(rig.attempt(waits).busy());
    CHECK(requests() == 1);  // it knows
    CHECK(rig.attempt(behind).busy());
    CHECK(rig.release(r) == ReleaseResult::released);
    rig.until([&] { return rig.woken(waits); }, "the mutex is told");
    CHECK(requests() == 2);  // of the two others
    CHECK(rig.attempt(waits).granted());
    CHECK(requests() == 0);
    CHECK(text(server, "a") == waits.owner);
    CHECK(rig.renew(waits).renewal == Renewal::renewed);
    CHECK(requests() == 1);
    CHECK(rig.release(waits) == ReleaseResult::released);
    CHECK(requests() == 1);
    rig.until([&] { return rig.woken(behind); }, "the reader is told");
    CHECK(rig.attempt(behind).granted());
    CHECK(behind.token() > waits.token());
    CHECK(rig.release(behind) == ReleaseResult::released);
    // A mutex as before: one request for each.
    Try as_ever("a");
    requests();
    CHECK(rig.attempt(as_ever).granted());
    CHECK(requests() == 1);
    // Who leaves a name for which a reader waits does so with its units.
    Part late(reader, 10s, true);
    CHECK(rig.attempt(late).busy());
    CHECK(requests() == 1);
    CHECK(rig.release(as_ever) == ReleaseResult::released);
    CHECK(requests() == 2);
    rig.until([&] { return rig.woken(late); }, "the reader is told");
}

TEST_CASE("units: a run of readers is granted together, in steps of 128") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    warm_up(server, rig);
    Try writer("a", 60s);
    REQUIRE(rig.attempt(writer).granted());
    std::vector<std::unique_ptr<Part>> run;
    for (int i = 0; i < 300; i += 30) {
        std::vector<Try*> batch;
        for (int k = 0; k < 30; ++k) {
            run.push_back(std::make_unique<Part>(reader, 60s, true));
            batch.push_back(run.back().get());
        }
        rig.attempt(batch);
    }
    Part last(spi::Units{}, 60s, true);
    REQUIRE(rig.attempt(last).busy());
    CHECK(server.cli({"ZCARD", "{a}:hf:q"}).integer == 301);
    SECTION("the leaver comes again until all are granted") {
        const auto before = rig.backend->requests();
        CHECK(rig.release(writer) == ReleaseResult::released);
        CHECK(rig.backend->requests() - before == 4);  // as a mutex, and three steps
        CHECK(parts(server) == 300);
    }
    SECTION("the leaver is killed after one step: the next look goes on") {
        const auto answer = server.cli(
            call(holdfast::redis::Scripts::all().leave_units, {writer.owner, "r", "0", "0", "0"}));
        CHECK(answer.elements.at(0).text == "r m");
        CHECK(parts(server) == 128);
        rig.attempt(last);
        CHECK(parts(server) == 256);
        rig.attempt(last);
        CHECK(parts(server) == 300);
    }
    CHECK(last.busy());
    rig.until([&] { return rig.events.woken.size() >= 300; }, "all are told");
    for (const auto& one : run)
        REQUIRE(rig.attempt(*one).granted());
    CHECK(server.cli({"ZCARD", "{a}:hf:q"}).integer == 1);
}

TEST_CASE("units: a head of the line that cannot be told is passed over, one that polls is not") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try writer("a", 60s);
    Part r(reader, 10s, true);
    REQUIRE(rig.attempt(writer).granted());
    const bool polls = GENERATE(false, true);
    INFO(polls);
    queue_up(server, "head", polls ? "" : "hf:c:nobody", spi::Units{});
    const bool looks_again = GENERATE(false, true);
    INFO(looks_again);
    if (looks_again) queue_up(server, "head", polls ? "" : "hf:c:nobody", spi::Units{});
    REQUIRE(rig.attempt(r).busy());
    CHECK(rig.release(writer) == ReleaseResult::released);
    // One that came again is alive, and is not passed any more.
    CHECK(parts(server) == (polls || looks_again ? 0 : 1));
    CHECK(server.cli({"ZRANGE", "{a}:hf:q", "0", "0"}).elements.at(0).text == "head");
    Part hasty(reader);
    CHECK(rig.attempt(hasty).busy());
}

TEST_CASE("units: an attempt of a writer that arrives when it is a reader does nothing") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try writer("a");
    REQUIRE(rig.attempt(writer).granted());
    spi::Held h = writer.held();
    h.units = reader;
    std::vector<spi::Held*> items{&h};
    rig.run(rig.backend->renew(items));
    REQUIRE(h.renewal == Renewal::renewed);
    // Its units once made the script write four thousand million members.
    const auto answer =
        server.cli(call(holdfast::redis::Scripts::all().enter_units,
                        {"", std::string(writer.a.owner), "10000", "0", "3000", no_deadline, "",
                         std::to_string(spi::Units::all), std::to_string(spi::Units::all)}));
    CHECK(answer.elements.at(0).text.starts_with("l "));
    CHECK(parts(server) == 1);
}

TEST_CASE("units: all readers of a token are asked and broken by it") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part a(reader), b(reader);
    rig.attempt({&a, &b});
    REQUIRE((a.granted() && b.granted()));
    const auto soon = boot_clock::now() + 10s;
    const holdfast::FencingToken token{a.token()}, other{a.token() + 1};
    CHECK(rig.run(rig.backend->request_release("a", {other, {}}, soon)).error().why ==
          errc::not_held);
    CHECK(rig.run(rig.backend->break_lock("a", {.if_token = other}, soon)).error().why ==
          errc::not_held);
    CHECK(rig.run(rig.backend->request_release("a", {token, {}}, soon)).value().size() == 2);
    CHECK(rig.run(rig.backend->break_lock("a", {.if_token = token, .now = true}, soon))
              .value()
              .size() == 2);
    CHECK(server.cli({"EXISTS", "a", "{a}:hf:r"}).integer == 0);
}

TEST_CASE("units: a name is closed for min_hold, though the server's clock is set back meanwhile") {
    const holdfast::lab::TempDir folder;
    holdfast::lab::WallClock clock(folder / "clock");
    holdfast::lab::RedisOptions options;
    options.environment = clock.environment();
    auto server = RedisServer::start(options);
    for (const bool shares : {false, true}) {
        INFO(shares);
        server.cli({"FLUSHALL"});
        clock.set(0s);
        Rig rig(server.url());
        Part closed(shares ? reader : spi::Units{}, 2s), kept(shares ? reader : spi::Units{}, 2s);
        kept.name = "b", kept.a.name = kept.name;
        closed.a.min_hold = kept.a.min_hold = 60s;
        rig.attempt({&closed, &kept});
        REQUIRE(closed.granted());
        REQUIRE(kept.granted());
        clock.set(-600s);
        REQUIRE(holdfast::lab::ahead(server) < -500s);
        CHECK(rig.release(closed) == ReleaseResult::released);
        CHECK(left(server) > 50'000);
        CHECK(left(server) < 65'000);
        CHECK(rig.renew(kept).renewal == Renewal::renewed);
        CHECK(left(server, "b") > 50'000);
        CHECK(left(server, "b") < 65'000);
    }
}

TEST_CASE("units: a writer that polls keeps its place when the server's clock is set back") {
    test_support::Trial& trial = test_support::this_trial();
    const holdfast::lab::TempDir folder;
    holdfast::lab::WallClock clock(folder / "clock");
    holdfast::lab::RedisOptions options;
    options.environment = clock.environment();
    auto server = RedisServer::start(options);
    Rig rig(server.url(), "wait=poll");
    Part first(reader, 60s), writer(spi::Units{}, 60s, true), later(reader, 60s, true);
    REQUIRE(rig.attempt(first).granted());
    REQUIRE(rig.attempt(writer).busy());
    clock.set(-25s);
    REQUIRE(holdfast::lab::ahead(server) < -20s);
    Rig next(server.url(), "wait=poll");
    REQUIRE(next.attempt(later).granted());
    CHECK(next.release(later) == ReleaseResult::released);
    *holdfast::redis::state_of(writer.a.place).arrived -= 5s;
    *holdfast::redis::state_of(later.a.place).arrived -= 1100ms;
    REQUIRE(rig.attempt(writer).busy());
    // Its mark lasts until its next poll.
    trial.holds(next.attempt(later).busy(), 300ms, "the writer is ahead");
}

TEST_CASE("units: out of memory, a downgrade and an early release before min_hold work") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part writer(spi::Units{}), closed(spi::Units{}), other(spi::Units{});
    closed.name = "b", closed.a.name = closed.name;
    other.name = "d", other.a.name = other.name;
    closed.a.min_hold = 60s;
    REQUIRE(rig.attempt(writer).granted());
    REQUIRE(rig.attempt(closed).granted());
    server.cli({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(rig.attempt(other).error() == errc::unavailable);
    CHECK_THAT(other.a.detail, ContainsSubstring("OOM"));
    spi::Held h = writer.held();
    h.units = reader;
    std::vector<spi::Held*> items{&h};
    rig.run(rig.backend->renew(items));
    INFO(h.renewal_error.message() << ' ' << h.detail);
    CHECK(h.renewal == Renewal::renewed);
    CHECK(parts(server) == 1);
    CHECK(rig.release(closed) == ReleaseResult::released);
    CHECK(left(server, "b") > 50'000);
    CHECK(text(server, "b") == "hf:m");
    Part again(spi::Units{});
    again.name = "c", again.a.name = again.name;
    server.cli({"CONFIG", "SET", "maxmemory", "0"});
    REQUIRE(rig.attempt(again).granted());
    server.cli({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(rig.break_lock("c").has_value());
    CHECK(rig.renew(again).renewal == Renewal::lost);
}

TEST_CASE("units: thousands of readers are broken, or asked, in steps that keep nobody waiting") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part one(reader, 600s);
    REQUIRE(rig.attempt(one).granted());
    // As if each had come by itself.
    constexpr std::size_t crowd = 3000;
    const std::string ends = server.cli({"ZSCORE", "{a}:hf:r", one.owner}).text;
    std::vector<std::string> all{"ZADD", "{a}:hf:r"};
    for (std::size_t i = 1; i < crowd; ++i)
        all.insert(all.end(), {ends, spi::make_owner({})});
    REQUIRE(server.cli(all).integer == crowd - 1);
    server.cli({"CONFIG", "SET", "slowlog-log-slower-than", "500000"});
    server.cli({"SLOWLOG", "RESET"});
    const auto deadline = [] { return boot_clock::now() + 10s; };
    const auto asked = rig.run(rig.backend->request_release("a", {}, deadline()));
    REQUIRE(asked.has_value());
    CHECK(asked->size() == crowd);
    CHECK(std::all_of(asked->begin(), asked->end(), [](const auto& h) { return h.asked; }));
    const auto before = rig.backend->requests();
    const auto told = rig.run(rig.backend->break_lock("a", {}, deadline()));
    REQUIRE(told.has_value());
    CHECK(told->size() == crowd);
    CHECK(rig.backend->requests() - before > crowd / 128);
    CHECK(rig.renew(one).renewal_error == errc::revoked);
    const auto broken = rig.run(rig.backend->break_lock("a", {.now = true}, deadline()));
    REQUIRE(broken.has_value());
    CHECK(broken->size() == crowd);
    CHECK(server.cli({"EXISTS", "a", "{a}:hf:r"}).integer == 0);
    const auto slow = server.cli({"SLOWLOG", "GET", "1"});
    INFO(holdfast::lab::to_string(slow).substr(0, 400));
    trial.holds(slow.elements.empty(), 500ms, "no step takes longer than that");
    CHECK(rig.run(rig.backend->break_lock("a", {}, deadline())).error().why == errc::not_held);
}

TEST_CASE("units: what a distant waiter that polls leaves lasts until its next poll") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = RedisServer::start();
    Rig near(server.url(), "wait=poll");
    holdfast::lab::Proxy proxy(server.port());
    proxy.delay(holdfast::lab::Direction::to_client, 400ms);
    Rig distant("redis://127.0.0.1:" + std::to_string(proxy.port()), "wait=poll");
    Part first(reader), writer(spi::Units{}, 10s, true), later(reader, 10s, true);
    REQUIRE(near.attempt(first).granted());
    REQUIRE(distant.attempt(writer).busy());
    *holdfast::redis::state_of(writer.a.place).arrived -= 1100ms;
    REQUIRE(distant.attempt(writer).busy());
    // For 300 ms, and twice as long as its answers take; one of these has passed.
    trial.holds(near.attempt(later).busy(), 700ms, "the distant one is ahead");
}

TEST_CASE("units: keys of another kind are answered, and stay as they are") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Part r(reader, 10s, true), permit(permits(2, 3)), fine(reader);
    fine.name = "b";
    fine.a.name = fine.name;
    const std::string key = GENERATE("a", "{a}:hf:s", "{a}:hf:q", "{a}:hf:x");
    INFO(key);
    server.cli({"RPUSH", key, "x"});
    rig.attempt({&r, &fine});
    CHECK(r.error() == errc::kind_mismatch);
    CHECK(fine.granted());
    CHECK(rig.attempt(permit).error() == errc::kind_mismatch);
    CHECK(server.cli({"TYPE", key}).text == "list");
    server.cli({"DEL", key});
    CHECK(rig.attempt(permit).granted());
    CHECK(rig.release({&permit, &fine}) == 2);
}
