#include "rig.hpp"

#include <cstdlib>
#include <fstream>
#include <future>

#include "waiter.hpp"

namespace sql_tests {

Server& server() {
    static Server one = Server::start();
    return one;
}

hf::Client open_here(const std::string& query) {
    return open(server().url(), query);
}

std::string url_of(const Server& server, const std::string& user) {
    return std::string(dialect::scheme) + "://" + user +
           "@127.0.0.1:" + std::to_string(server.port()) + "/holdfast";
}

std::string url_through(std::uint16_t port) {
    return server().url_with_password(port);
}

std::string row(const std::string& columns, const std::string& name, const Server& at) {
    return at.value("SELECT " + columns + " FROM holdfast_lease WHERE slot = 0 AND name = '" +
                    name + "'");
}

bool is_free(const std::string& name, const Server& at) {
    return at.value("SELECT count(*) FROM holdfast_lease WHERE slot = 0 AND name = '" + name +
                    "' AND owner IS NOT NULL AND expires > " + dialect::in_seconds(0)) == "0";
}

void require_free(const std::string& name) {
    for (test_support::Trial trial; trial.again();)
        trial.holds(lab::reached([&] { return is_free(name); }, 2s), 2s, name + " is free");
}

hf::error_code acquire_on_engine(const hf::Client& c, const std::string& name,
                                 hf::milliseconds wait) {
    std::promise<hf::error_code> told;
    lock_of(c, name)->async_acquire({.wait = wait},
                                    [&](hf::error_code ec, hf::Lease) { told.set_value(ec); });
    return told.get_future().get();
}

hf::error_code acquire_by(bool lane, const hf::Client& c, const std::string& name,
                          hf::milliseconds wait) {
    return lane ? lock_of(c, name)->acquire({.wait = wait}).error()
                : acquire_on_engine(c, name, wait);
}

void warm_up(const hf::Client& client, const std::string& name) {
    for (int i = 0; i < 2; ++i) {
        hold(client, name).release();
        CHECK_FALSE(acquire_on_engine(client, name, 5s));
        require_free(name);
    }
}

void cycle(hf::Lock& lock, bool by_lane) {
    if (by_lane) {
        auto lease = hold(lock);
        CHECK(lease.release() == ReleaseResult::released);
        return;
    }
    hf::Lease lease = test_support::Waiter(lock, {}).lease();
    std::promise<ReleaseResult> done;
    lease.async_release(hf::Outcome::done,
                        [&](hf::error_code, ReleaseResult r) { done.set_value(r); });
    CHECK(done.get_future().get() == ReleaseResult::released);
}

void let_in_by_password(const Server& own, const std::string& tls, const lab::TempDir& dir) {
    const auto url = own.url();
    const auto file = [&](const char* name) { return "&password_file=" + (dir / name).string(); };
    std::ofstream(dir / "right") << own.password() << "\n";
    std::ofstream(dir / "wrong") << "wr0ng-w0rd\n";
    CHECK(hold(open(url, tls + file("right")), "N").valid());
    ::setenv("HOLDFAST_TEST_PASSWORD", own.password().c_str(), 1);
    CHECK(hold(open(url, tls + "&password_env=HOLDFAST_TEST_PASSWORD"), "N").valid());
    CHECK(hold(open(own.url_with_password(), tls), "N").valid());
    const auto client = open(url, tls + file("wrong"));
    const auto words = refused(client, "N", errc::denied);
    CHECK_THAT(words, ContainsSubstring(dialect::wrong_password));
    CHECK(words.find("w0rd") == std::string::npos);
    std::ofstream(dir / "wrong") << own.password() << "\n";  // read again at the next connect
    CHECK(hold(client, "N").valid());
    CHECK(client.url().find("w0rd") == std::string::npos);
    const auto clear = open(url, dialect::without_tls + file("right"));
    CHECK_FALSE(lock_of(clear, "N")->try_acquire().has_value());
}

int sessions(const Server& at) {
    return std::stoi(at.value(dialect::sessions));
}

std::string lock_row(const std::string& name) {
    return "BEGIN; SELECT 1 FROM holdfast_lease WHERE name = '" + name + "' FOR UPDATE";
}

void while_commits_wait(test_support::Trial& trial, const Server& at, const hf::Client& client,
                        hf::Lease& lease, const std::function<int()>& waiting,
                        const std::function<void()>& end) {
    const auto start = boot_clock::now();
    const auto got = lock_of(client, "N")->acquire({.wait = 1200ms});
    const auto took = boot_clock::now() - start;
    const int waits = waiting();
    const auto renewed = lease.renew();
    end();
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().message());
    CHECK((got.error() == errc::unavailable || got.error() == errc::in_doubt));
    trial.within(took, 2200ms, "a wait of 1200 ms");
    CHECK(waits > 0);  // it took effect
    CHECK_FALSE(renewed.has_value());
    CHECK(lease.valid());
    lab::wait_until([&] { return lease.renew().has_value(); }, 5s, "renewed again");
    // The commit came about in the end; it is taken back long before its ttl.
    lab::wait_until([&] { return is_free("N", at); }, cap(10s), "nothing is left");
    CHECK(hold(client, "N").valid());
}

Foreign::Foreign(const Server& at, const std::string& statements, std::chrono::seconds for_long)
    : at_(at) {
    const std::string mark = fresh("foreign");
    thread_ = std::thread([&at, all = statements + "; " + dialect::sleep(mark, for_long.count())] {
        try {
            at.sql(all);
        } catch (const lab::LabError&) {  // it was ended
        }
    });
    lab::wait_until(
        [&] {
            const auto found = at.sql(dialect::asleep(mark));
            if (!found.empty()) id_ = found[0][0];
            return !found.empty();
        },
        5s, "the other session is there");
}

void Foreign::go() {
    if (!thread_.joinable()) return;
    try {
        at_.sql(dialect::end_session(id_));
    } catch (const lab::LabError&) {  // it has gone by itself
    }
    thread_.join();
}

}  // namespace sql_tests
