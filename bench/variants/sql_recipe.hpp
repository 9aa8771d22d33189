// What the SQL recipes need beside them: the task that sweeps old rows away.
#pragma once
#include <cstdint>
#include <string>
#include <thread>

#include "holdfast/clock.hpp"
#include "variants/sql_connection.hpp"

namespace holdfast::bench {

enum class Sweeps : std::uint8_t {
    rows,   ///< deletes them
    states  ///< of rows with state and version: sets them free
};

/// Sweeps rows that were taken longer than `age` ago, again and again, as a scheduled task does:
/// of all holders, whether or not they still work. Ends with the object.
class Sweeper {
public:
    Sweeper(const SqlConnect&, const std::string& table, milliseconds age, Sweeps = Sweeps::rows);

private:
    std::jthread thread_;
};

}  // namespace holdfast::bench
