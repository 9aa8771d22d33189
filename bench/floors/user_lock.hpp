// MariaDB's and MySQL's own lock of a session, GET_LOCK, by bare libmariadb, and the round trips
// below it.
#pragma once
#include <memory>
#include <string>

#include "floors/libmariadb.hpp"
#include "floors/session_queue.hpp"

namespace holdfast::bench {

/// One connection. One thread at a time. Errors, everywhere: SelfCheck.
class UserLock {
public:
    explicit UserLock(const MariadbAddress& at) : connection_(at) {}
    /// SELECT 1, twice: what no client can beat.
    void two_round_trips();
    /// GET_LOCK, RELEASE_LOCK.
    void cycle();
    /// Whether the server shows the lock as this session's, while it is taken or after that.
    bool shows_lock(bool while_held);
    std::string server_version() const;
    static std::string library_version();

private:
    Libmariadb connection_;
};

/// One more session that wants the one lock of a queue. Errors: SelfCheck.
std::unique_ptr<LockSession> user_lock_session(const MariadbAddress&);

}  // namespace holdfast::bench
