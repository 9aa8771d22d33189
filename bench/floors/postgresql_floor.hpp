// The raw floor for PostgreSQL: a row that is inserted unless it is there, and deleted. Bare libpq,
// prepared once.
#pragma once
#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::bench {

class PostgresqlFloor {
public:
    /// `release_synced`: whether the DELETE waits for the disk; the INSERT does. Errors: SelfCheck.
    PostgresqlFloor(const std::string& url, bool release_synced);
    /// INSERT ... ON CONFLICT DO NOTHING, then DELETE. Errors: SelfCheck unless each changed a row.
    void cycle();

private:
    struct Free {
        void operator()(PGconn* c) const { PQfinish(c); }
        void operator()(PGresult* r) const { PQclear(r); }
    };
    using Connection = std::unique_ptr<PGconn, Free>;
    using Result = std::unique_ptr<PGresult, Free>;
    static Connection connect(const std::string& url, bool synced);
    static void change_one(PGconn*, const char* statement, const std::string& owner);

    Connection take_, free_;
    std::uint64_t counter_ = 0;
};

}  // namespace holdfast::bench
