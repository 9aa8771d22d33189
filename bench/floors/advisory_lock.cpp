#include "floors/advisory_lock.hpp"

#include <libpq-fe.h>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

struct Clear {
    void operator()(PGresult* r) const { PQclear(r); }
};
using Result = std::unique_ptr<PGresult, Clear>;

}  // namespace

void AdvisoryLock::Close::operator()(pg_conn* c) const {
    PQfinish(c);
}

AdvisoryLock::AdvisoryLock(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_.get()) != CONNECTION_OK)
        throw SelfCheck(std::string("bare libpq: ") + PQerrorMessage(connection_.get()));
    prepare("nothing", "SELECT 1");
    prepare("lock", "SELECT pg_advisory_lock(4711)");
    prepare("unlock", "SELECT pg_advisory_unlock(4711)");
    prepare("shown",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND pid = pg_backend_pid()");
}

void AdvisoryLock::two_round_trips() {
    for (int i = 0; i < 2; ++i)
        if (value("nothing") != "1") throw SelfCheck("bare libpq: no 1");
}

void AdvisoryLock::cycle() {
    value("lock");
    if (value("unlock") != "t") throw SelfCheck("bare libpq: the advisory lock was not held");
}

bool AdvisoryLock::shows_lock(bool while_held) {
    if (!while_held) return value("shown") != "0";
    value("lock");
    const bool shown = value("shown") == "1";
    value("unlock");
    return shown;
}

std::string AdvisoryLock::server_version() const {
    const std::string all = PQparameterStatus(connection_.get(), "server_version");
    return all.substr(0, all.find(' '));  // then follows who packed it
}

std::string AdvisoryLock::library_version() {
    return std::to_string(PQlibVersion() / 10000) + "." + std::to_string(PQlibVersion() % 10000);
}

void AdvisoryLock::prepare(const char* name, const char* sql) {
    const Result result(PQprepare(connection_.get(), name, sql, 0, nullptr));
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
        throw SelfCheck(std::string("bare libpq: ") + PQerrorMessage(connection_.get()));
}

std::string AdvisoryLock::value(const char* name) {
    const Result result(PQexecPrepared(connection_.get(), name, 0, nullptr, nullptr, nullptr, 0));
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK || PQntuples(result.get()) != 1)
        throw SelfCheck(std::string("bare libpq: ") + PQerrorMessage(connection_.get()));
    return PQgetvalue(result.get(), 0, 0);
}

}  // namespace holdfast::bench
