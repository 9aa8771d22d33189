// PostgreSQL's own advisory lock of a session, by bare libpq, and the round trips below it.
#pragma once
#include <memory>
#include <string>

struct pg_conn;

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
    struct Close {
        void operator()(pg_conn* c) const;
    };
    void prepare(const char* name, const char* sql);
    /// The one value of a prepared statement.
    std::string value(const char* name);

    std::unique_ptr<pg_conn, Close> connection_;
};

}  // namespace holdfast::bench
