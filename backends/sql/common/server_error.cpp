#include "server_error.hpp"

namespace holdfast::sql {
namespace {

using spi::net::Meaning;

constexpr Meaning table[] = {
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
     "the server takes no writes: it is a standby, or set to read only", Meaning::said},
    {Error::old_primary, errc::unavailable,
     "the server is an old primary: another one has been promoted since", Meaning::said},
    {Error::other_cluster, errc::bad_config,
     "the server belongs to another database cluster than the one before it"},
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
    {Error::too_old, errc::not_supported, "the server is older than this backend supports"},
    {Error::strange_answer, errc::unavailable,
     "the server answered with what the statement cannot have"},
    {Error::strange_settings, errc::bad_config, "the server's settings break the promises"},
    {Error::refused_statement, errc::not_supported, "the server refused the statement"},
};

}  // namespace

std::span<const Meaning> meanings() noexcept {
    return table;
}

bool Errors::cannot_now(const error_code& ec) const noexcept {
    if (ec.category() != category_) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::connecting:
        case Error::starting:
        case Error::read_only:
        case Error::old_primary:
        case Error::too_many:
        case Error::timed_out:
        case Error::conflict:
        case Error::no_resources:
            return true;
        default:
            return false;
    }
}

bool Errors::ask_elsewhere(const error_code& ec) const noexcept {
    if (ec.category() != category_) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::unresolved:
        case Error::refused:
        case Error::no_answer:
        case Error::closed:
        case Error::starting:
        case Error::read_only:
        case Error::old_primary:
        case Error::other_cluster:
            return true;
        default:
            return false;
    }
}

}  // namespace holdfast::sql
