// What is stopped, comes late, is refused or is inherited: a process that does not run for longer
// than its lease, a server that hangs, answers after their time, and programs that are started.
#include <dirent.h>
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "suite.hpp"

using namespace suite;
using lab::Direction;

namespace {

/// Nobody answered, not enough did, or what became of the request is not known.
bool unanswered(const hf::error_code& ec) {
    return ec == errc::unavailable || ec == errc::no_quorum || ec == errc::in_doubt;
}

std::set<int> descriptors() {
    std::set<int> out;
    DIR* d = ::opendir("/proc/self/fd");
    while (const dirent* e = ::readdir(d))
        if (e->d_name[0] != '.' && std::atoi(e->d_name) != ::dirfd(d))
            out.insert(std::atoi(e->d_name));
    ::closedir(d);
    return out;
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string text;
    std::getline(in, text);
    return in.eof() ? std::string() : text;  // only with its end
}

}  // namespace

TEST_CASE("T5: a holder stopped beyond its ttl knows at its first look, and disturbs nobody",
          "[T5][T20][T33]") {
    if (!backend().shared_between_processes()) return;
    const bool broken = GENERATE(false, true);  // an operator does not wait for its ttl to be over
    INFO((broken ? "broken meanwhile" : "left alone"));
    const auto name = fresh_name("stopped");
    lab::TempDir dir;
    lab::Process worker(
        worker_in("stopped", backend().url("ttl=2s&request_timeout=2s"), name, dir));
    lab::wait_until([&] { return !text_of(dir.path() / "held").empty(); }, cap(30s), "it holds");
    worker.pause();
    if (broken) {
        const auto told = open().break_lock(name);
        REQUIRE(told.has_value());
        CHECK(told->front().free_in > 0ms);  // it may still believe
    }
    // Nobody was told anything: it is free when its time is over.
    auto next = hold(*lock_of(open("ttl=10s"), name), 30s);
    REQUIRE(worker.state() == lab::ProcessState::stopped);
    const auto token = std::stoull(text_of(dir.path() / "held"));
    if (has(Capability::fencing)) CHECK(next.fencing_token().value > token);
    std::ofstream(dir.path() / "resumed") << "now\n";
    worker.signal(SIGCONT);  // it may be through before anybody has seen it run
    require_ended(worker);
    CHECK(next.renew().has_value());
    CHECK(next.release() == hf::ReleaseResult::released);
    require_clean(name);
}

TEST_CASE("a process that is killed during an acquire leaves nothing beyond its ttl", "[T5]") {
    if (!backend().shared_between_processes()) return;
    const auto name = fresh_name("killed-asking");
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto client = open("ttl=30s");
    const auto lock = lock_of(client, name);
    for (int i = 0; i < 6; ++i) {
        const bool held = i % 2 == 0;  // it waits, or is about to be granted
        INFO((held ? "while it waits" : "while it is granted"));
        hf::Lease holder;
        if (held) holder = hold(*lock);
        lab::TempDir dir;
        lab::Process worker(
            worker_in("stopped", backend().url("ttl=1500ms&request_timeout=1s"), name, dir));
        lab::wait_until([&] { return !text_of(dir.path() / "asked").empty(); }, cap(30s),
                        "it asks");
        if (held && has(Capability::fifo))
            lab::wait_until([&] { return waiters_of(name) == 1; }, 10s, "it waits");
        const auto until = now() + std::chrono::microseconds(random() % 5000);
        while (now() < until) {
        }
        worker.kill();
        holder.release();
        // A grant that nobody knows of, or a place in line, ends by its ttl.
        auto next = hold(*lock, 10s);
        CHECK(next.valid());
        next.release();
        require_clean(name, 2500ms);  // its ttl, and a second
    }
}

TEST_CASE("T3: a server that hangs costs the request's time-out, and nothing is left of it",
          "[T3]") {
    Trial& trial = this_trial();
    if (backend().proxy() == nullptr) return;
    const auto name = fresh_name("hang");
    const auto client = open("ttl=3s&request_timeout=1s");
    const auto lock = lock_of(client, name);
    hold(*lock).release();
    auto kept = hold(*lock_of(client, name + "-kept"));
    auto returned = hold(*lock_of(client, name + "-returned"));
    REQUIRE(backend().pause_server());
    const auto start = now();
    const auto got = lock->acquire({.wait = 1200ms});
    const auto acquired = now();
    const auto renewed = kept.renew();
    const auto after_renewal = now();
    const auto released = returned.release();
    const auto all = now();
    const bool told = lab::reached([&] { return kept.lost().stop_requested(); }, 10s);
    const auto late = now() - kept.valid_until();
    REQUIRE(backend().resume_server());
    REQUIRE_FALSE(got.has_value());
    CHECK(unanswered(got.error()));
    trial.within(acquired - start, 2200ms, "an acquire that waits for 1200 ms");
    CHECK_FALSE(renewed.has_value());
    trial.within(after_renewal - acquired, 2s, "a renewal that is not answered");
    CHECK(released != hf::ReleaseResult::released);
    trial.within(all - after_renewal, 2s, "a release that is not answered");
    CHECK(told);
    CHECK(kept.lost_reason() == errc::lost);
    trial.within(late, 500ms, "lost(), from the lease's end");
    // What was sent is executed now, or refused as too late. Without a deadline in the request,
    // as in the plain modes, it may hold for a ttl.
    for (const char* end : {"", "-kept", "-returned"}) {
        const auto free = [&] {
            const auto seen = client.inspect(name + end);
            return seen && seen->holders.empty() && seen->waiters.empty();
        };
        trial.holds(lab::reached(free, 5s), 5s, name + end + " is free");
    }
    CHECK(hold(*lock).valid());
}

TEST_CASE("T1: an answer that comes too late answers nobody, and grants nothing", "[T1]") {
    auto* proxy = backend().proxy();
    if (proxy == nullptr) return;
    const auto name = fresh_name("late");
    SECTION("later than its request may last: no other request gets it") {
        const auto client = open_proxied("ttl=20s&request_timeout=1s");
        const auto first = lock_of(client, name), second = lock_of(client, name + "-2");
        hold(*first).release();
        hold(*second).release();
        proxy->delay(Direction::to_client, 10s);  // it is taken back
        const auto got = first->acquire({.wait = 400ms});
        const auto delayed = proxy->counters().delayed;
        proxy->heal();
        CHECK(delayed > 0);
        REQUIRE_FALSE(got.has_value());
        CHECK(unanswered(got.error()));
        auto lease = hold(*second);
        const auto seen = open().inspect(name + "-2");
        REQUIRE(seen.has_value());
        REQUIRE(seen->holders.size() == 1);
        CHECK(seen->holders[0].owner == lease.owner_id());
        if (has(Capability::fencing)) CHECK(seen->holders[0].token == lease.fencing_token());
        CHECK(lease.release() == hf::ReleaseResult::released);
        require_clean(name);
        require_clean(name + "-2");
    }
    SECTION("later than the ttl: time that is over is not handed out") {
        const auto client = open_proxied("ttl=1500ms&request_timeout=4s");
        const auto lock = lock_of(client, name);
        hold(*lock).release();
        proxy->delay(Direction::to_client, 2000ms);
        const auto got = lock->acquire({.wait = 3s});
        const auto delayed = proxy->counters().delayed;
        proxy->heal();
        CHECK(delayed > 0);
        CHECK_FALSE(got.has_value());
        require_clean(name);
        CHECK(hold(*lock).valid());
    }
    require_clean(name);
}

TEST_CASE("T1: a connection that is reset during acquire, renew and release", "[T1]") {
    auto* proxy = backend().proxy();
    if (proxy == nullptr) return;
    const auto name = fresh_name("reset");
    const auto client = open_proxied("ttl=20s");
    const auto lock = lock_of(client, name);
    for (const Direction direction : {Direction::to_server, Direction::to_client})
        for (const std::string what : {"acquire", "renew", "release"}) {
            INFO(what << (direction == Direction::to_server ? " to the server" : " to the client"));
            hold(*lock).release();
            const auto break_it = [&](const char* when) {
                if (what == when) proxy->reset_after(direction, 1);
            };
            break_it("acquire");
            auto lease = hold(*lock);
            break_it("renew");
            if (what == "renew") (void)lease.renew();
            CHECK(lease.valid());
            break_it("release");
            CHECK(lease.release() == hf::ReleaseResult::released);
            CHECK(lab::reached([&] { return proxy->fired(); }, 2s));
            proxy->heal();
            require_clean(name);
        }
}

TEST_CASE("T8: a server that refuses connections is said in time, and tried again", "[T8]") {
    Trial& trial = this_trial();
    auto* proxy = backend().proxy();
    if (proxy == nullptr) return;
    proxy->heal();
    const auto name = fresh_name("refused");
    proxy->refuse();
    const auto client = open_proxied("request_timeout=300ms");
    const auto lock = lock_of(client, name);
    const auto start = now();
    const auto got = lock->acquire({.wait = 500ms});
    trial.within(now() - start, 1500ms, "the refusal of a wait of 500 ms");
    REQUIRE_FALSE(got.has_value());
    CHECK((got.error() == errc::unavailable || got.error() == errc::no_quorum));
    hf::result<hf::Lease> waited = hf::Lease();
    // It is tried again for as long as a first contact may take.
    const auto patient = open_proxied("request_timeout=20s");
    hf::Diagnostics words;
    std::thread waiting(
        [&] { waited = lock_of(patient, name)->acquire({.wait = 40s, .diagnostics = &words}); });
    lab::wait_until([&] { return patient.stats().waiting == 1; }, 5s, "it waits");
    proxy->heal();
    waiting.join();
    INFO((waited ? "held" : waited.error().message()) << ' ' << words.text());
    REQUIRE(waited.has_value());
    CHECK(waited->valid());
    waited->release();
    require_clean(name);
}

TEST_CASE("T26: a program that is started inherits no descriptor of ours", "[T26]") {
    const auto name = fresh_name("exec");
    const auto before = descriptors();
    const auto client = open();
    const auto lock = lock_of(client, name);
    auto lease = hold(*lock);
    // Somebody who waits, too: that may be a connection of its own.
    std::atomic<bool> ended{false};
    lock->async_acquire({.wait = 30s}, [&](hf::error_code, hf::Lease l) {
        l.release();
        ended = true;
    });
    lab::wait_until([&] { return client.stats().attempts >= 2; }, 10s, "it waits");
    std::size_t ours = 0;
    for (const int fd : descriptors()) {
        if (before.count(fd) != 0) continue;
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags < 0) continue;
        ++ours;
        std::error_code ignored;
        INFO(fd << " -> "
                << std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored));
        // libpq sets the flag by a call of its own, right after it has made a socket.
        CHECK(lab::reached(
            [&] {
                const int now = ::fcntl(fd, F_GETFD);
                return now < 0 || (now & FD_CLOEXEC) != 0;
            },
            100ms));
    }
    CHECK(ours > 0);
    lease.release();
    CHECK(lab::reached([&] { return ended.load(); }, 10s));
    require_clean(name);
}
