#include "errors.hpp"

#include <string>

namespace holdfast::postgresql {
namespace {

// The base has no virtual destructor, and its instances are never deleted.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "postgresql"; }
    std::string message(int code) const override {
        switch (static_cast<Error>(code)) {
            case Error::unresolved:
                return "the host name could not be resolved";
            case Error::refused:
                return "the server could not be reached";
            case Error::no_answer:
                return "the server did not answer in time";
            case Error::closed:
                return "the connection to the server broke";
            case Error::starting:
                return "the server is starting or shutting down";
            case Error::too_many:
                return "the server has no connection left";
            case Error::denied:
                return "the server refused the user or the password";
            case Error::no_database:
                return "the database does not exist";
            case Error::read_only:
                return "the server takes no writes";
            case Error::no_table:
                return "the table holdfast_lease does not exist, and this role may not make it";
            case Error::no_right:
                return "this role may not use the table holdfast_lease";
            case Error::foreign_table:
                return "the table holdfast_lease of the database belongs to another program";
            case Error::no_key:
                return "the table holdfast_lease has no primary key";
            case Error::untrusted_table:
                return "the table holdfast_lease could run the code of others with this role's "
                       "permissions";
            case Error::newer_format:
                return "the table was made by a newer version of Holdfast";
            case Error::older_format:
                return "the table was made by an older version of Holdfast";
            case Error::foreign_row:
                return "the row of that name is another kind of lock";
            case Error::timed_out:
                return "the server cancelled the statement";
            case Error::conflict:
                return "the statement conflicted with others too often";
            case Error::no_resources:
                return "the server is out of resources";
            case Error::bad_text:
                return "the database's encoding cannot hold that name";
            case Error::too_old:
                return "PostgreSQL 12 or newer is needed";
            case Error::strange_answer:
                return "the server answered with what the statement cannot have";
            case Error::refused_statement:
                return "the server refused the statement";
        }
        return "unknown error";
    }
    boost::system::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<Error>(code)) {
            case Error::denied:
            case Error::no_table:
            case Error::no_right:
                return make_error_condition(errc::denied);
            case Error::foreign_row:
            case Error::foreign_table:
                return make_error_condition(errc::kind_mismatch);
            case Error::no_database:
            case Error::no_key:
            case Error::untrusted_table:
            case Error::newer_format:
            case Error::older_format:
                return make_error_condition(errc::bad_config);
            case Error::bad_text:
                return make_error_condition(errc::bad_name);
            case Error::too_old:
            case Error::refused_statement:
                return make_error_condition(errc::not_supported);
            default:
                return make_error_condition(errc::unavailable);
        }
    }
};
#pragma GCC diagnostic pop

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
    static const Category c;
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
