// PostgreSQL's own advisory lock of a session, by bare libpq, and the round trips below it.
#pragma once
#include <memory>
#include <string>

#include "floors/libpq.hpp"
#include "floors/session_queue.hpp"

namespace holdfast::bench {

/// One connection with prepared statements. One thread at a time. Errors, everywhere: SelfCheck.
class AdvisoryLock {
public:
    explicit AdvisoryLock(const std::string& url);
    /// SELECT 1, twice: what no client can beat.
    void two_round_trips();
    /// pg_advisory_lock, pg_advisory_unlock.
    void cycle();
    /// Whether the server shows an advisory lock of this session, while it is taken or after that.
    bool shows_lock(bool while_held);
    std::string server_version() const;
    static std::string library_version();

private:
    Libpq connection_;
};

/// One more session that wants the one advisory lock of a queue. Errors: SelfCheck.
std::unique_ptr<LockSession> advisory_session(const std::string& url);

}  // namespace holdfast::bench
