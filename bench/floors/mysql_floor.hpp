// The raw floors for MariaDB and MySQL, by bare libmariadb: a row that is inserted unless it is
// there, and deleted; and many rows that are taken together and freed together.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "floors/libmariadb.hpp"

namespace holdfast::bench {

/// One row, prepared once; each statement is a transaction of its own.
class MysqlFloor {
public:
    static constexpr const char* variant = "floor: INSERT, DELETE";

    /// Errors: SelfCheck.
    explicit MysqlFloor(const MariadbAddress& at);
    /// INSERT IGNORE, then DELETE. Errors: SelfCheck unless each changed a row.
    void cycle();

private:
    Libmariadb connection_;
    MariadbStatement take_, free_;
    std::uint64_t counter_ = 0;
};

/// Rows that stay: one packet takes all of them in one transaction, another one frees them.
class MysqlBatch {
public:
    static constexpr const char* variant = "floor: batched UPDATE";

    /// Makes `rows` rows. Errors: SelfCheck.
    MysqlBatch(const MariadbAddress& at, std::size_t rows);
    /// Takes all and frees all; returns how many. Errors: SelfCheck unless each was changed.
    std::size_t cycles();

private:
    void change_all(const std::string& statements);

    Libmariadb connection_;
    const std::size_t rows_;
    std::uint64_t counter_ = 0;
};

}  // namespace holdfast::bench
