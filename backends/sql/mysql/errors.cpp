#include "errors.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::mysql {
namespace {

struct Known {
    unsigned number;
    Error error;
};
// MariaDB Knowledge Base, "MariaDB Error Code Reference"; MySQL Server Error Message Reference.
// Those from 2000 to 2999 and from 5000 to 5999 are libmariadb's own.
constexpr Known numbers[] = {
    {1020, Error::conflict},        // the row has changed since the snapshot
    {1021, Error::no_resources},    // disk full
    {1037, Error::no_resources},    // out of memory
    {1038, Error::no_resources},    // out of memory for a sort
    {1040, Error::too_many},        // too many connections
    {1041, Error::no_resources},    // out of memory
    {1044, Error::denied},          // no permission for the database
    {1045, Error::denied},          // user or password
    {1046, Error::no_database},     // none was chosen
    {1047, Error::starting},        // a Galera node that is not ready
    {1049, Error::no_database},     // unknown database
    {1053, Error::starting},        // shutdown
    {1054, Error::foreign_table},   // unknown column
    {1079, Error::starting},        // shutdown
    {1114, Error::no_resources},    // the table is full
    {1129, Error::denied},          // the host is blocked
    {1130, Error::denied},          // the host is not allowed
    {1142, Error::no_right},        // no permission for the table
    {1143, Error::no_right},        // no permission for a column
    {1146, Error::no_table},        // no such table
    {1152, Error::closed},          // the connection was aborted
    {1203, Error::too_many},        // too many connections of this user
    {1205, Error::timed_out},       // innodb_lock_wait_timeout
    {1206, Error::no_resources},    // too many row locks
    {1213, Error::conflict},        // deadlock
    {1226, Error::too_many},        // a limit of this user
    {1227, Error::no_right},        // no permission
    {1290, Error::read_only},       // --read-only
    {1300, Error::bad_text},        // characters that the encoding does not have
    {1317, Error::timed_out},       // KILL QUERY
    {1366, Error::bad_text},        // characters that the encoding does not have
    {1406, Error::bad_text},        // longer than the column
    {1698, Error::denied},          // user
    {1792, Error::read_only},       // a read-only transaction
    {1836, Error::read_only},       // innodb_read_only
    {1862, Error::denied},          // the password has expired
    {1927, Error::closed},          // KILL
    {1969, Error::timed_out},       // max_statement_time
    {2002, Error::refused},         // no connection to a socket
    {2003, Error::refused},         // no connection to a host
    {2005, Error::unresolved},      // unknown host
    {2006, Error::closed},          // the server has gone away
    {2008, Error::no_resources},    // libmariadb is out of memory
    {2012, Error::refused},         // in the handshake
    {2013, Error::closed},          // the connection broke during the statement
    {2026, Error::refused},         // TLS
    {2027, Error::strange_answer},  // a malformed packet
    {2055, Error::closed},          // the connection broke
    {2059, Error::denied},          // a way to authenticate that is not allowed, or not known
    {2061, Error::denied},          // TLS is needed for it
    {3024, Error::timed_out},       // max_execution_time
    {3118, Error::denied},          // the account is locked
    {3159, Error::denied},          // require_secure_transport, and there is no TLS
    {4151, Error::denied},          // the account is locked
    {5010, Error::denied},          // a way to authenticate that is not allowed
    {5014, Error::closed},          // the connection broke while sending
    {5026, Error::strange_answer},  // an error without its words
};

}  // namespace

const sql::Errors& errors() noexcept {
    static const sql::Errors of_mysql("mysql");
    return of_mysql;
}

Error from_number(unsigned number) noexcept {
    const auto* const at = std::find_if(std::begin(numbers), std::end(numbers),
                                        [=](const Known& k) { return k.number == number; });
    return at == std::end(numbers) ? Error::refused_statement : at->error;
}

bool of_client(unsigned number) noexcept {
    return number < 1000 || (number >= 2000 && number < 3000) || (number >= 5000 && number < 6000);
}

bool of_preparing(unsigned number) noexcept {
    return number == 1243 || number == 1461 || number == 1615;
}

bool rolled_back(unsigned number) noexcept {
    const bool commit_failed = number == 1180 || number == 1053;
    return !of_client(number) && !commit_failed && from_number(number) != Error::closed;
}

bool worth_repeating(unsigned number) noexcept {
    return number == 1213 || number == 1020;
}

}  // namespace holdfast::mysql
