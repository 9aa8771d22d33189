// The other processes of these tests: they hold, crash and count, and say so on standard output.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "holdfast/holdfast.hpp"

namespace {

using holdfast::Client;
using namespace std::chrono_literals;

int fail(const char* what) {
    std::printf("failed: %s\n", what);
    return 1;
}

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

/// Has written, has not committed, and stays like that until it is killed.
int die_in_transaction(const char* path, const char* name) {
    sqlite3* db = nullptr;
    if (sqlite3_open(path, &db) != SQLITE_OK) return fail("open");
    sqlite3_busy_timeout(db, 5000);
    const std::string sql =
        "BEGIN IMMEDIATE; UPDATE holdfast_format SET last = last + 1000000000000;"
        "UPDATE holdfast_lease SET owner = 'ghost', token = token + 1000000000000 WHERE name = '" +
        std::string(name) + "'";
    if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return fail("write");
    say("inside");
    for (;;)
        ::pause();
}

/// Acquires and releases `times`, with a witness that only one process may have, and prints tokens.
int count(const char* url, const char* name, int times, const char* witness) {
    auto client = Client::open(url);
    if (!client) return fail("open");
    auto lock = client->make_lock(name);
    if (!lock) return fail("lock");
    for (int i = 0; i < times; ++i) {
        auto lease = (*lock)->acquire({.wait = 60s});
        if (!lease) return fail(lease.error().message().c_str());
        const int fd = ::open(witness, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0) return fail("two holders");
        ::close(fd);
        // Work that takes a moment, or nobody would ever be seen beside anybody.
        for (const auto until = holdfast::boot_clock::now() + 200us;
             holdfast::boot_clock::now() < until;) {
        }
        std::printf("%llu\n", static_cast<unsigned long long>(lease->fencing_token().value));
        ::unlink(witness);
        const auto answer = lease->release();
        if (answer != holdfast::ReleaseResult::released)
            return fail(("release: " + std::string(holdfast::to_string(answer))).c_str());
    }
    say("done");
    return 0;
}

/// Holds until it is killed.
int hold(const char* url, const char* name) {
    auto client = Client::open(url);
    if (!client) return fail("open");
    auto lock = client->make_lock(name);
    if (!lock) return fail("lock");
    holdfast::Diagnostics words;
    auto lease = (*lock)->acquire({.wait = 10s, .note = {}, .diagnostics = &words});
    if (!lease) return fail(("acquire: " + words.text()).c_str());
    say("held " + std::to_string(lease->fencing_token().value));
    for (;;)
        ::pause();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "die-in-transaction" && argc == 4) return die_in_transaction(argv[2], argv[3]);
    if (what == "count" && argc == 6) return count(argv[2], argv[3], std::atoi(argv[4]), argv[5]);
    if (what == "hold" && argc == 4) return hold(argv[2], argv[3]);
    return fail("usage");
}
