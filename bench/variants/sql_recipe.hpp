// What the SQL recipes need beside them: the task that sweeps old rows away.
#pragma once
#include <holdfast/lab/postgres_server.hpp>
#include <string>
#include <thread>

#include "holdfast/clock.hpp"

namespace holdfast::bench {

/// Deletes rows that are older than `age`, again and again, as a scheduled task does: whoever holds
/// them, and whether or not they still work. Ends with the object.
class Sweeper {
public:
    Sweeper(const lab::PostgresServer&, const std::string& table, milliseconds age);

private:
    std::jthread thread_;
};

}  // namespace holdfast::bench
