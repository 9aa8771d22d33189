// Files of histories: written by real processes that are killed, cut at every byte.
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "catch.hpp"
#include "checker/recorder.hpp"
#include "histories.hpp"

using namespace histories;
using history::Gravity;
using history::Recorder;
using history::Trouble;
using history::Verdict;

namespace {

std::string contents(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void put(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Runs the function in a process of its own.
pid_t in_child(const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    work();
    ::_exit(0);
}

int ended(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

struct Ran {
    int code = -1;
    std::string out;
};

Ran command(const std::string& arguments) {
    Ran ran;
    const std::string line =
        "'" + std::string(std::getenv("HOLDFAST_CHECK_HISTORY")) + "' " + arguments + " 2>&1";
    FILE* pipe = ::popen(line.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::array<char, 4096> buffer{};
    while (const auto n = std::fread(buffer.data(), 1, buffer.size(), pipe))
        ran.out.append(buffer.data(), n);
    ran.code = WEXITSTATUS(::pclose(pipe));
    return ran;
}

}  // namespace

TEST_CASE("what a recorder writes is what is read", "[history]") {
    const Folder folder;
    const auto file = folder.path() / "a", other = folder.path() / "b";
    const std::string long_name(512, 'n');
    std::uint64_t id = 0;
    const Nanos before_kill = history::now();
    {
        Recorder r(file, "worker");
        CHECK_THROWS_AS(Recorder(file, "again"), std::system_error);
        const auto plain = r.name("plain", history::declares_fencing);
        const auto lengthy = r.name(long_name);
        const auto t = r.invoked(plain);
        id = t.id;
        r.granted(t, history::now() + 1'000'000'000, 7, "abcdefghijklmnopqrstuv.host.1",
                  history::Previous::none);
        r.renewed(t, history::now() + 2'000'000'000);
        r.seen(plain, "abcdefghijklmnopqrstuv.host.1", history::now());
        r.releasing(t, history::now() + 3'000'000'000);
        r.released(t, history::Answer::released);
        r.failed(r.invoked(lengthy), history::Outcome::timed_out);
        const auto lost = r.invoked(lengthy);
        r.granted(lost, history::now() - 1, 0, "", history::Previous::unknown);
        r.lost(lost, history::now());
        CHECK(r.good());
    }
    {
        Recorder r(other, "store");
        r.write(r.name("plain"), 3, 7, id, true, true);
        r.server_killed(before_kill);
    }
    Verdict v;
    const auto h = history::read({file, other}, v);
    history::check(h, {}, v);
    INFO(v.text());
    CHECK(v.clean());
    CHECK(v.exit_code() == 0);
    REQUIRE(h.names.size() == 2);
    CHECK(h.names[0].text == "plain");
    CHECK(h.names[0].fencing);
    CHECK_FALSE(h.names[0].fifo);
    CHECK(h.names[1].text == long_name);
    REQUIRE(h.acquisitions.size() == 3);
    const auto& a = h.acquisitions[h.find(id)];
    CHECK(a.token == 7);
    CHECK(a.was_released);
    CHECK(a.until > a.granted + 2'000'000'000);
    CHECK(h.acquisitions[1].has_failed);
    CHECK(h.acquisitions[2].was_lost);
    REQUIRE(h.writes.size() == 1);
    CHECK(h.writes[0].writer == id);
    CHECK(h.writes[0].store == 3);
    CHECK(h.sightings[0].owner == a.owner);
    REQUIRE(h.kills.size() == 1);
    CHECK(h.kills[0].from == before_kill);
    CHECK(h.kills[0].to >= before_kill);
    CHECK_THAT(history::dump(other), ContainsSubstring("server_killed"));
    CHECK_THAT(history::dump(file), ContainsSubstring("owner=abcdefghijklmnopqrstuv.h"));
}

TEST_CASE("threads of one process share a recorder", "[history]") {
    const Folder folder;
    const auto file = folder.path() / "a";
    {
        Recorder r(file, "threads");
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&, name = r.name("lock-" + std::to_string(i))] {
                for (std::uint64_t token = 1; token <= 2000; ++token) {
                    const auto t = r.invoked(name);
                    r.granted(t, history::never, token, "me", history::Previous::unknown);
                    r.releasing(t, history::never);
                    r.released(t, history::Answer::released);
                }
            });
    }
    const Verdict v = history::check_files({file});
    INFO(v.text());
    CHECK(v.clean());
    CHECK(v.figures.granted == 8000);
}

TEST_CASE("a process killed at any point leaves a file that can be read", "[history]") {
    for (int i = 0; i < 40; ++i) {
        const Folder folder;
        const auto file = folder.path() / "a";
        const pid_t child = in_child([&] {
            Recorder r(file, "killed");
            const auto name = r.name("lock");
            for (std::uint64_t token = 1;; ++token) {
                const auto t = r.invoked(name);
                r.granted(t, history::never, token, "me", history::Previous::unknown);
                r.releasing(t, history::never);
                r.released(t, history::Answer::released);
            }
        });
        // Where in its loop it is just then is chance.
        const std::uint64_t enough = 64U * 20U * static_cast<unsigned>(1 + i);
        std::error_code none_yet;
        while (!(std::filesystem::file_size(file, none_yet) >= enough) || none_yet)
            std::this_thread::yield();
        ::kill(child, SIGKILL);
        CHECK(WIFSIGNALED(ended(child)));
        const Verdict v = history::check_files({file});
        INFO(v.text());
        CHECK(v.clean());
        CHECK(v.figures.granted >= 4);
        CHECK(v.figures.unfinished + v.figures.silent <= 1);
    }
}

TEST_CASE("real processes with a real lock, and without it", "[history]") {
    for (const bool locked : {true, false}) {
        const Folder folder;
        const auto lock = folder.path() / "lock";
        put(lock, std::string(8, '\0'));
        std::vector<pid_t> children;
        std::vector<std::filesystem::path> files;
        int gate[2];
        REQUIRE(::pipe(gate) == 0);
        for (int p = 0; p < 3; ++p) {
            files.push_back(folder.path() / std::to_string(p));
            children.push_back(in_child([&, locked] {
                Recorder r(files.back(), "p" + std::to_string(p));
                const auto name = r.name("flock", history::declares_fencing);
                const int fd = ::open(lock.c_str(), O_RDWR);
                char byte = 0;
                ::close(gate[1]);
                if (::read(gate[0], &byte, 1) < 0) ::_exit(1);
                for (int i = 0; i < 300; ++i) {
                    const auto t = r.invoked(name);
                    if (locked) ::flock(fd, LOCK_EX);
                    // The token is a number in the locked file: read, then written.
                    std::uint64_t token = 0;
                    if (::pread(fd, &token, 8, 0) != 8) ::_exit(1);
                    ++token;
                    r.granted(t, history::never, token, "me", history::Previous::unknown);
                    std::this_thread::yield();
                    if (::pwrite(fd, &token, 8, 0) != 8) ::_exit(1);
                    r.releasing(t, history::never);
                    if (locked) ::flock(fd, LOCK_UN);
                    r.released(t, history::Answer::released);
                }
            }));
        }
        ::close(gate[0]);
        ::close(gate[1]);
        for (const pid_t child : children)
            CHECK(ended(child) == 0);
        const Verdict v = history::check_files(files);
        INFO(v.text());
        CHECK(v.figures.granted == 900);
        CHECK(v.count(Gravity::damage) == 0);
        CHECK(v.sound() == locked);
        if (!locked) {
            CHECK(v.count(Trouble::overlap) > 0);
            CHECK(v.count(Trouble::token_repeated) > 0);
        }
    }
}

TEST_CASE("a full disk ends a history, not its process", "[history]") {
    const Folder folder;
    const auto file = folder.path() / "a";
    const pid_t child = in_child([&] {
        // In the middle of a record, as a disk may be.
        const rlimit small{1000, 1000};
        ::setrlimit(RLIMIT_FSIZE, &small);
        ::signal(SIGXFSZ, SIG_IGN);
        Recorder r(file, "full");
        const auto name = r.name("lock");
        for (int i = 0; i < 10; ++i)
            r.failed(r.invoked(name), history::Outcome::contended);
        ::_exit(r.good() ? 1 : 0);
    });
    REQUIRE(ended(child) == 0);
    CHECK(std::filesystem::file_size(file) == 1000);
    const Verdict v = history::check_files({file});
    INFO(v.text());
    CHECK(v.sound());
    CHECK(v.count(Trouble::torn) == 1);
    CHECK(v.figures.acquisitions == 7);
}

TEST_CASE("files cut at every byte", "[history]") {
    Random random(20);
    const World world = correct(random, {.names = 1, .rounds = 5, .kills = false});
    const Folder folder;
    const auto files = world.save(folder.path());
    const auto whole = history::check_files(files);
    REQUIRE(whole.sound());
    const std::string bytes = contents(files[0]);
    REQUIRE(bytes.size() > 1000);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        put(files[0], bytes.substr(0, cut));
        const Verdict v = history::check_files(files);
        INFO("cut at " << cut << "\n" << v.text());
        // Nothing before the cut is lost.
        REQUIRE(v.figures.records ==
                whole.figures.records - (bytes.size() / 64 - std::max<std::size_t>(cut / 64, 1)));
        // A record that is cut is told, and then nothing is concluded from what may be missing.
        const bool between = cut % 64 == 0 && cut != 0;
        REQUIRE(v.count(Trouble::torn) == (between ? 0 : 1));
        REQUIRE(v.count(Trouble::contradictory) == 0);
        // Between two records the cut looks as if the process had been killed there.
        if (!between) REQUIRE(v.sound());
        REQUIRE(v.count(Gravity::violation) ==
                v.count(Trouble::within_validity) + v.count(Trouble::previous_holder));
        REQUIRE(v.figures.silent <= 1);
    }
}

TEST_CASE("what is no history is told", "[history]") {
    const Folder folder;
    const auto file = folder.path() / "a";
    for (const std::string& text : {std::string("hello"), std::string(64, '\0'),
                                    std::string(6400, 'x'), std::string("{}\n")}) {
        put(file, text);
        const Verdict v = history::check_files({file});
        CHECK(v.count(Trouble::torn) >= 1);
        CHECK(v.exit_code() == 1);
    }
    CHECK(history::check_files({folder.path() / "none"}).exit_code() == 1);
    CHECK(history::check_files({folder.path()}).exit_code() == 1);
    Log newer;
    newer.header.magic = history::magic;
    newer.header.version = 2;
    put(file, newer.bytes());
    const Verdict v = history::check_files({file});
    CHECK_THAT(v.text(), ContainsSubstring("format version 2"));
    put(file, "");
    CHECK_THAT(history::check_files({file}).text(), ContainsSubstring("empty"));
    // Noise in which every record has a right checksum.
    Random random(1);
    for (int i = 0; i < 200; ++i) {
        World world = correct(random, {.rounds = 3});
        for (Log& log : world.logs)
            for (Record& r : log.records) {
                if (!chance(random, 0.2)) continue;
                std::array<std::uint64_t, 8> words{};
                for (auto& word : words)
                    word = chance(random, 0.5) ? random() : random() % 16;
                std::memcpy(static_cast<void*>(&r), words.data(), sizeof r);
                if (chance(random, 0.8)) r.kind = static_cast<Kind>(random() % 15);
            }
        CHECK(world.judge().count(Trouble::contradictory) > 0);
    }
}

TEST_CASE("the command says the same", "[history]") {
    Random random(5);
    World world = correct(random, {.kills = false});
    const Folder folder;
    const auto run = [&](const std::string& options) {
        std::string line = options;
        for (const auto& file : world.save(folder.path()))
            line += " '" + file.string() + "'";
        return command(line);
    };
    CHECK(run("").code == 0);
    CHECK_THAT(run("").out, ContainsSubstring("no guarantee was broken"));
    CHECK_THAT(run("--json").out, ContainsSubstring("\"sound\":true"));
    CHECK_THAT(run("--dump").out, ContainsSubstring("granted name=1"));
    CHECK(run("--alone 0").code == 2);
    CHECK(run("--unsynced-release 600").code == 0);
    world.logs[0].records.pop_back();
    world.logs[0].records.pop_back();
    const auto all = traces(world);
    for (const auto& t : all)
        if (t.has(Kind::granted)) record(world, t, Kind::granted).token = 5;
    const Ran ran = run("--lines 2");
    CHECK(ran.code == 2);
    CHECK_THAT(ran.out, ContainsSubstring("token_repeated"));
    CHECK_THAT(run("--json").out, ContainsSubstring("\"exit_code\":2"));
    CHECK(command("").code == 64);
    CHECK(command("--lines x f").code == 64);
    CHECK(command("--unsynced-release f").code == 64);
    CHECK(command("--what f").code == 64);
    CHECK(command("--help").code == 0);
    CHECK(command("/nonexistent/file").code == 1);
}
