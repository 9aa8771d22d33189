// The raw floor for PostgreSQL: a row that is inserted unless it is there, and deleted. Bare libpq,
// prepared once.
#pragma once
#include <cstdint>
#include <string>

#include "floors/libpq.hpp"

namespace holdfast::bench {

class PostgresqlFloor {
public:
    /// `release_synced`: whether the DELETE waits for the disk; the INSERT does. Errors: SelfCheck.
    PostgresqlFloor(const std::string& url, bool release_synced);
    /// INSERT ... ON CONFLICT DO NOTHING, then DELETE. Errors: SelfCheck unless each changed a row.
    void cycle();

private:
    static Libpq connect(const std::string& url, bool synced);

    Libpq take_, free_;
    std::uint64_t counter_ = 0;
};

}  // namespace holdfast::bench
