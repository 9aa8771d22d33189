#include "errors.hpp"

#include "holdfast/spi/net/category.hpp"

namespace holdfast::postgresql {
namespace {

using spi::net::Meaning;

constexpr Meaning meanings[] = {
    {Error::unresolved, errc::unavailable, "the host name could not be resolved"},
    {Error::refused, errc::unavailable, "the server could not be reached"},
    {Error::no_answer, errc::unavailable, "the server did not answer in time"},
    {Error::connecting, errc::unavailable,
     "connecting to the server takes longer than request_timeout", Meaning::said},
    {Error::closed, errc::unavailable, "the connection to the server broke"},
    {Error::starting, errc::unavailable, "the server is starting or shutting down: try again later",
     Meaning::said},
    {Error::too_many, errc::unavailable,
     "the server has no connection left: raise its max_connections, or find what uses them",
     Meaning::said},
    {Error::denied, errc::denied, "the server refused the user or the password"},
    {Error::no_database, errc::bad_config, "the database does not exist"},
    {Error::read_only, errc::unavailable,
     "the server takes no writes: it is a standby, or default_transaction_read_only is on",
     Meaning::said},
    {Error::no_table, errc::denied,
     "the table holdfast_lease does not exist, and this role may not make it"},
    {Error::no_right, errc::denied, "this role may not use the table holdfast_lease"},
    {Error::foreign_table, errc::kind_mismatch,
     "the table holdfast_lease of the database belongs to another program"},
    {Error::no_key, errc::bad_config, "the table holdfast_lease has no primary key"},
    {Error::untrusted_table, errc::bad_config,
     "the table holdfast_lease could run the code of others with this role's permissions"},
    {Error::newer_format, errc::bad_config, "the table was made by a newer version of Holdfast"},
    {Error::older_format, errc::bad_config, "the table was made by an older version of Holdfast"},
    {Error::foreign_row, errc::kind_mismatch, "the row of that name is another kind of lock"},
    {Error::timed_out, errc::unavailable, "the server cancelled the statement", Meaning::said},
    {Error::conflict, errc::unavailable,
     "the statement conflicted with others too often: try again later", Meaning::said},
    {Error::no_resources, errc::unavailable, "the server is out of resources: its log says which",
     Meaning::said},
    {Error::bad_text, errc::bad_name, "the database's encoding cannot hold that name"},
    {Error::too_old, errc::not_supported, "PostgreSQL 12 or newer is needed"},
    {Error::strange_answer, errc::unavailable,
     "the server answered with what the statement cannot have"},
    {Error::refused_statement, errc::not_supported, "the server refused the statement"},
};

struct Known {
    std::string_view state;
    Error error;
};
// Matched at the beginning: a whole SQLSTATE, or the two letters of a class.
constexpr Known states[] = {
    {"57P01", Error::starting},      {"57P02", Error::starting},
    {"57P03", Error::starting},      {"57P04", Error::no_database},
    {"57P05", Error::closed},        {"57014", Error::timed_out},
    {"55P03", Error::timed_out},     {"53300", Error::too_many},
    {"53", Error::no_resources},     {"28", Error::denied},
    {"3D000", Error::no_database},   {"25006", Error::read_only},
    {"40", Error::conflict},         {"42501", Error::no_right},
    {"42P01", Error::no_table},      {"42703", Error::foreign_table},
    {"42804", Error::foreign_table}, {"42883", Error::foreign_table},
    {"42809", Error::foreign_table}, {"42P10", Error::no_key},
    {"22021", Error::bad_text},      {"22P05", Error::bad_text},
    {"08", Error::closed},
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const spi::net::Category c("postgresql", meanings);
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

Error from_state(std::string_view state) noexcept {
    for (const Known& k : states)
        if (state.starts_with(k.state)) return k.error;
    return Error::refused_statement;
}

bool rolled_back(std::string_view state) noexcept {
    return !state.empty() && !state.starts_with("08") && !state.starts_with("57P");
}

bool cannot_now(const error_code& ec) noexcept {
    if (ec.category() != category()) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::connecting:
        case Error::starting:
        case Error::too_many:
        case Error::timed_out:
        case Error::conflict:
        case Error::no_resources:
            return true;
        default:
            return false;
    }
}

bool worth_repeating(std::string_view state) noexcept {
    return state == "40001" || state == "40P01";
}

}  // namespace holdfast::postgresql
