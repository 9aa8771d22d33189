#include "floors/advisory_lock.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* lock = "lock";
constexpr const char* unlock = "unlock";

class Session final : public LockSession {
public:
    explicit Session(const std::string& url) : connection_(url) {
        connection_.prepare(lock, "SELECT pg_advisory_lock(4712)");
        connection_.prepare(unlock, "SELECT pg_advisory_unlock(4712)");
    }
    int socket() const override { return PQsocket(connection_.get()); }
    void send_lock() override { send(lock); }
    void send_unlock() override { send(unlock); }
    std::optional<bool> answer() override {
        PGconn* connection = connection_.get();
        if (PQconsumeInput(connection) != 1) fail();
        while (PQisBusy(connection) == 0) {
            PGresult* result = PQgetResult(connection);
            if (result == nullptr) return done_;
            const bool well = PQresultStatus(result) == PGRES_TUPLES_OK;
            // pg_advisory_lock returns nothing.
            if (well) done_ = PQgetvalue(result, 0, 0) != std::string("f");
            PQclear(result);
            if (!well) fail();
        }
        return std::nullopt;
    }

private:
    void send(const char* statement) {
        done_ = false;
        if (PQsendQueryPrepared(connection_.get(), statement, 0, nullptr, nullptr, nullptr, 0) != 1)
            fail();
    }
    [[noreturn]] void fail() const {
        throw SelfCheck(std::string("advisory lock: ") + PQerrorMessage(connection_.get()));
    }

    Libpq connection_;
    bool done_ = false;
};

}  // namespace

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

std::unique_ptr<LockSession> advisory_session(const std::string& url) {
    return std::make_unique<Session>(url);
}

}  // namespace holdfast::bench
