#include "floors/advisory_lock.hpp"

#include "bench.hpp"

namespace holdfast::bench {

AdvisoryLock::AdvisoryLock(const std::string& url) : connection_(url) {
    connection_.prepare("nothing", "SELECT 1");
    connection_.prepare("lock", "SELECT pg_advisory_lock(4711)");
    connection_.prepare("unlock", "SELECT pg_advisory_unlock(4711)");
    connection_.prepare("shown",
                        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                        "AND pid = pg_backend_pid()");
}

void AdvisoryLock::two_round_trips() {
    for (int i = 0; i < 2; ++i)
        if (connection_.value("nothing") != "1") throw SelfCheck("bare libpq: no 1");
}

void AdvisoryLock::cycle() {
    connection_.value("lock");
    if (connection_.value("unlock") != "t")
        throw SelfCheck("bare libpq: the advisory lock was not held");
}

bool AdvisoryLock::shows_lock(bool while_held) {
    if (!while_held) return connection_.value("shown") != "0";
    connection_.value("lock");
    const bool shown = connection_.value("shown") == "1";
    connection_.value("unlock");
    return shown;
}

std::string AdvisoryLock::server_version() const {
    const std::string all = PQparameterStatus(connection_.get(), "server_version");
    return all.substr(0, all.find(' '));  // then follows who packed it
}

std::string AdvisoryLock::library_version() {
    return std::to_string(PQlibVersion() / 10000) + "." + std::to_string(PQlibVersion() % 10000);
}

}  // namespace holdfast::bench
