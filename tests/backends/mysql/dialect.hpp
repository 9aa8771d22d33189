// MariaDB, for the tests of both servers with SQL.
#pragma once
#include <string>

#include "holdfast/lab/mariadb_server.hpp"

namespace holdfast::mysql {}

namespace sql_tests {

namespace db = holdfast::mysql;
using Server = holdfast::lab::MariadbServer;

/// What is said to it and by it where servers differ.
namespace dialect {

inline constexpr const char* scheme = "mysql";
inline constexpr const char* without_tls = "tls=off";  ///< of a query
inline constexpr const char* yes = "1";                ///< a condition that is true
inline constexpr const char* version = "ver";          ///< of a row: another one after each write
inline constexpr bool reads_gone = true;  ///< a row that is read says which owners have left
inline constexpr const char* epoch = "0";
inline constexpr const char* never = "9223372036854775807";  ///< the end of a lease without one
inline constexpr const char* more_than_a_day = "90000000000";
/// Of a row: it keeps requests out; and what makes that past.
inline constexpr const char* keeps_out = "LENGTH(gone) > 0";
inline constexpr const char* kept_out_long_ago = "expires = expires - 90000000000";
inline constexpr const char* unix_time = "UNIX_TIMESTAMP(SYSDATE(6))";
inline constexpr const char* wrong_password = "Access denied";
inline constexpr const char* too_many_sessions = "max_user_connections";
/// Our sessions.
inline constexpr const char* sessions =
    "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'holdfast'";
inline constexpr const char* end_sessions = "KILL USER holdfast";
/// A commit does not wait for the disk by default.
inline constexpr const char* sync_nothing = "SET GLOBAL innodb_flush_log_at_trx_commit = 2";
/// Whether a client is known to wait: they poll, so nothing tells.
inline constexpr const char* one_waits = "SELECT 1";

/// A time, as the table has it.
inline std::string in_seconds(int n) {
    return "(UNIX_TIMESTAMP(SYSDATE(6)) + " + std::to_string(n) + ") * 1000000";
}
/// Rows with a column `n`.
inline std::string numbers_to(int last) {
    return "(SELECT seq AS n FROM seq_1_to_" + std::to_string(last) + ") AS numbers";
}
/// How many sessions we may have.
inline std::string limit_sessions(int n) {
    return "ALTER USER holdfast WITH MAX_USER_CONNECTIONS " + std::to_string(n == 0 ? -1 : n);
}
inline std::string sleep(const std::string& mark, long long seconds) {
    return "SELECT /* " + mark + " */ SLEEP(" + std::to_string(seconds) + ")";
}
/// The session that does so.
inline std::string asleep(const std::string& mark) {
    return "SELECT id FROM information_schema.processlist WHERE state = 'User sleep' AND info LIKE "
           "'%/* " +
           mark + " */%'";
}
inline std::string end_session(const std::string& id) {
    return "KILL " + id;
}
/// Of the table.
inline std::string comment(const std::string& text) {
    return "ALTER TABLE holdfast_lease COMMENT '" + text + "'";
}
/// Behind a statement that makes the table: clients may use it.
inline constexpr const char* give_away = "";

}  // namespace dialect
}  // namespace sql_tests

namespace mysql_tests {
using namespace sql_tests;
namespace my = holdfast::mysql;
}  // namespace mysql_tests
