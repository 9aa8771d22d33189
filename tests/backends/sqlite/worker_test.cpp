// The thread that works on the file for the engine: what it answers when it fails in the middle or
// is closing, in which order, and what it knows after its connection was opened anew.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fstream>

#include "../sql/events.hpp"
#include "fixture.hpp"
#include "worker.hpp"

namespace holdfast::sqlite::test {
namespace {

using sql_tests::Events;

struct Working {
    using Job = Worker::Job;
    Working()
        : worker(std::make_shared<Worker>(database, spi::Context{io.get_executor(), events})) {
        Table(file).grant("setup", "setup");
    }
    ~Working() {
        database->reports.report_to(nullptr);
        worker->close();
    }
    std::shared_ptr<Job> job() {
        auto made = std::make_shared<Job>(io.get_executor());
        made->deadline = boot_clock::now() + 20s;
        return made;
    }
    static Step step(Step::Kind kind, const std::string& key) {
        Step s;
        s.kind = kind;
        s.key = key;
        s.owner = "one";
        s.ttl = 10s;
        s.deadline = boot_clock::now() + 10s;
        return s;
    }
    void start(const std::shared_ptr<Job>& job, std::function<void(bool)> then) {
        asio::co_spawn(io, worker->run(job),
                       [then](const std::exception_ptr&, bool answered) { then(answered); });
    }
    const File file;
    const std::shared_ptr<DatabaseFile> database = file.database();
    Events events;
    asio::io_context io;
    const std::shared_ptr<sql::Worker<Step, Connection>> worker;
};

TEST_CASE("what a worker cannot do for lack of memory is in doubt, and no withdrawal is well") {
    Working w;
    w.events.no_memory = true;
    w.database->reports.report_to(&w.events);
    std::filesystem::permissions(w.file.path, std::filesystem::perms(0644));  // is told of
    auto job = w.job();
    for (const auto kind :
         {Step::Kind::withdraw, Step::Kind::attempt, Step::Kind::renew, Step::Kind::release})
        job->add(Working::step(kind, "a"));
    bool answered = false;
    w.start(job, [&](bool yes) { answered = yes; });
    w.io.run();
    REQUIRE(answered);
    REQUIRE(w.events.warnings > 0);
    CHECK(job->steps[0].error == errc::unavailable);
    CHECK(std::holds_alternative<spi::Attempt::NoAnswer>(job->steps[1].outcome));
    CHECK(job->steps[2].error == errc::unavailable);
    CHECK(job->steps[2].detail == "out of memory");
    CHECK(job->steps[3].released == ReleaseResult::unreachable);
}

TEST_CASE("a worker that is closing grants nothing more, and still frees") {
    Working w;
    w.database->closing = true;
    auto job = w.job();
    job->add(Working::step(Step::Kind::attempt, "a"));
    job->add(Working::step(Step::Kind::withdraw, "b"));
    w.start(job, [](bool) {});
    w.io.run();
    const auto* failed = std::get_if<spi::Attempt::Failed>(&job->steps[0].outcome);
    REQUIRE(failed != nullptr);
    CHECK(failed->why == errc::closed);
    CHECK_FALSE(job->steps[1].error);
    CHECK(w.file.sql("SELECT count(*) FROM holdfast_lease WHERE name = 'a'") == "0");
}

TEST_CASE("nobody's answer waits behind a question") {
    Working w;
    std::atomic<bool> both_there{false}, granted{false};
    auto first = w.job(), attempt = w.job(), question = w.job();
    first->ask = [&](Connection&) { CHECK(lab::reached([&] { return both_there.load(); })); };
    attempt->add(Working::step(Step::Kind::attempt, "a"));
    bool in_time = false;
    question->ask = [&](Connection&) {
        in_time = lab::reached([&] { return granted.load(); }, 5s);
    };
    w.start(first, [](bool) {});
    w.start(attempt, [&](bool yes) { granted = yes; });
    w.start(question, [](bool) {});
    asio::post(w.io, [&] { both_there = true; });
    w.io.run();
    CHECK(in_time);
}

TEST_CASE("what was known of the file is forgotten when it is opened anew") {
    const File file;
    Table t(file);
    t.grant("a", "holder");
    Watch watch;
    const auto reopen = [&] {
        t.connection.close();
        REQUIRE_FALSE(t.connection.open(boot_clock::now() + 2s));
    };
    reopen();
    watch.refresh(t.connection);
    Step waiter = t.step(Step::Kind::attempt, "a", "waiter");
    waiter.queue = true;
    waiter.outcome = spi::Attempt::Busy{1s, false};
    REQUIRE(watch.record(waiter));
    TableRow row;
    REQUIRE(look(t.connection, "a", row) == SQLITE_OK);
    watch.seen("a", *row.state(), row.columns);
    REQUIRE(watch.answers(waiter));
    t.connection.close();
    file.sql("UPDATE holdfast_lease SET owner = NULL");
    reopen();
    watch.refresh(t.connection);
    CHECK_FALSE(watch.answers(waiter));
}

TEST_CASE("the child of a fork knows the clock of its own time namespace", "[fork]") {
    if (::geteuid() != 0) return;  // only root makes one
    const auto before = boot_us();
    const pid_t maker = ::fork();
    REQUIRE(maker >= 0);
    if (maker == 0) {
        if (::unshare(CLONE_NEWTIME) != 0) ::_exit(9);
        std::ofstream("/proc/self/timens_offsets") << "boottime 86400 0\n" << std::flush;
        const pid_t child = ::fork();
        if (child == 0) ::_exit(boot_us() - before < 3600'000'000LL ? 0 : 1);
        int status = 0;
        ::waitpid(child, &status, 0);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
    }
    int status = 0;
    ::waitpid(maker, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a child that has its parent's process id, in a namespace of its own, is another",
          "[fork]") {
    if (::geteuid() != 0) return;  // only root makes one
    const File file;
    const pid_t maker = ::fork();
    REQUIRE(maker >= 0);
    if (maker == 0) {
        // The first process of one namespace forks the first process of another.
        if (::unshare(CLONE_NEWPID) != 0) ::_exit(9);
        const pid_t first = ::fork();
        if (first == 0) {
            Table parents(file);
            parents.attempt("a", "parent");
            if (::getpid() != 1 || ::unshare(CLONE_NEWPID) != 0) ::_exit(9);
            const pid_t child = ::fork();
            if (child == 0) {
                if (::getpid() != 1) ::_exit(9);
                // Closing what is the parent's would take its locks with it.
                sqlite3* const db = parents.connection.handle();
                parents.connection.close();
                int any = 0;
                ::_exit(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &any, &any, 0) ==
                                SQLITE_OK
                            ? 0
                            : 1);
            }
            int status = 0;
            ::waitpid(child, &status, 0);
            ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
        }
        int status = 0;
        ::waitpid(first, &status, 0);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
    }
    int status = 0;
    ::waitpid(maker, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace holdfast::sqlite::test
