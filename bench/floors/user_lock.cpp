#include "floors/user_lock.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* lock = "SELECT GET_LOCK('bench', 10)";
constexpr const char* unlock = "SELECT RELEASE_LOCK('bench')";

class Session final : public LockSession {
public:
    explicit Session(const MariadbAddress& at) : connection_(at) {}
    int socket() const override { return connection_.socket(); }
    void send_lock() override { connection_.send("SELECT GET_LOCK('bench queue', 3600)"); }
    void send_unlock() override { connection_.send("SELECT RELEASE_LOCK('bench queue')"); }
    /// An answer is one small packet: where its beginning is, the rest is.
    std::optional<bool> answer() override { return connection_.answer() == "1"; }

private:
    Libmariadb connection_;
};

}  // namespace

void UserLock::two_round_trips() {
    for (int i = 0; i < 2; ++i)
        if (connection_.value("SELECT 1") != "1") throw SelfCheck("bare libmariadb: no 1");
}

void UserLock::cycle() {
    if (connection_.value(lock) != "1") throw SelfCheck("bare libmariadb: GET_LOCK was refused");
    if (connection_.value(unlock) != "1")
        throw SelfCheck("bare libmariadb: the lock of GET_LOCK was not held");
}

bool UserLock::shows_lock(bool while_held) {
    constexpr const char* shown = "SELECT IFNULL(IS_USED_LOCK('bench') = CONNECTION_ID(), 0)";
    if (!while_held) return connection_.value(shown) != "0";
    connection_.value(lock);
    const bool it_does = connection_.value(shown) == "1";
    connection_.value(unlock);
    return it_does;
}

std::string UserLock::server_version() const {
    const std::string all = mysql_get_server_info(connection_.get());
    return all.substr(0, all.find('-'));  // then follows who packed it
}

std::string UserLock::library_version() {
    return mysql_get_client_info();
}

std::unique_ptr<LockSession> user_lock_session(const MariadbAddress& at) {
    return std::make_unique<Session>(at);
}

}  // namespace holdfast::bench
