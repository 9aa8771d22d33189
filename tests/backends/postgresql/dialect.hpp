// PostgreSQL, for the tests of both servers with SQL.
#pragma once
#include <string>

#include "holdfast/lab/postgres_server.hpp"

namespace holdfast::postgresql {}

namespace sql_tests {

namespace db = holdfast::postgresql;
using Server = holdfast::lab::PostgresServer;

/// What is said to it and by it where servers differ.
namespace dialect {

inline constexpr const char* scheme = "postgresql";
inline constexpr const char* without_tls = "sslmode=disable";  ///< of a query
inline constexpr const char* yes = "t";                        ///< a condition that is true
inline constexpr const char* version = "xmin::text";  ///< of a row: another one after each write
inline constexpr bool reads_gone = false;  ///< a row that is read says which owners have left
inline constexpr const char* epoch = "'epoch'";
inline constexpr const char* never = "'infinity'";  ///< the end of a lease without one
inline constexpr const char* more_than_a_day = "interval '25 hours'";
/// Of a row: it keeps requests out; and what makes that past.
inline constexpr const char* keeps_out = "gone <> '{}'::jsonb";
inline constexpr const char* kept_out_long_ago =
    "expires = 'epoch', "
    "gone = (SELECT jsonb_object_agg(key, 1) FROM jsonb_object_keys(gone) AS key)";
inline constexpr const char* unix_time = "extract(epoch FROM clock_timestamp())";
inline constexpr const char* wrong_password = "password authentication failed";
inline constexpr const char* too_many_sessions = "too many connections for role";
/// Our sessions.
inline constexpr const char* sessions =
    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'holdfast'";
inline constexpr const char* end_sessions =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'holdfast'";
/// A commit does not wait for the disk by default.
inline constexpr const char* sync_nothing = "ALTER ROLE holdfast SET synchronous_commit = off";
/// Whether a client is known to wait: it listens.
inline constexpr const char* one_waits =
    "SELECT count(*) = 1 FROM pg_stat_activity WHERE query ILIKE 'listen%'";

/// A time, as the table has it.
inline std::string in_seconds(int n) {
    return "clock_timestamp() + interval '" + std::to_string(n) + " s'";
}
/// Rows with a column `n`.
inline std::string numbers_to(int last) {
    return "generate_series(1, " + std::to_string(last) + ") AS n";
}
/// How many sessions we may have.
inline std::string limit_sessions(int n) {
    return "ALTER ROLE holdfast CONNECTION LIMIT " + std::to_string(n);
}
inline std::string sleep(const std::string& mark, long long seconds) {
    return "SELECT /* " + mark + " */ pg_sleep(" + std::to_string(seconds) + ")";
}
/// The session that does so.
inline std::string asleep(const std::string& mark) {
    return "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%/* " +
           mark + " */%'";
}
inline std::string end_session(const std::string& id) {
    return "SELECT pg_terminate_backend(" + id + ")";
}
/// Of the table.
inline std::string comment(const std::string& text) {
    return "COMMENT ON TABLE holdfast_lease IS '" + text + "'";
}
/// Behind a statement that makes the table: clients may use it.
inline constexpr const char* give_away =
    "; GRANT ALL ON holdfast_lease TO PUBLIC; ALTER TABLE holdfast_lease OWNER TO holdfast";

}  // namespace dialect
}  // namespace sql_tests

namespace postgresql_tests {
using namespace sql_tests;
namespace pg = holdfast::postgresql;
}  // namespace postgresql_tests
