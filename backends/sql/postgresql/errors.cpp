#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

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

const sql::Errors& errors() noexcept {
    static const sql::Errors of_postgresql("postgresql");
    return of_postgresql;
}

Error from_state(std::string_view state) noexcept {
    for (const Known& k : states)
        if (state.starts_with(k.state)) return k.error;
    return Error::refused_statement;
}

bool rolled_back(std::string_view state) noexcept {
    return !state.empty() && !state.starts_with("08") && !state.starts_with("57P");
}

bool worth_repeating(std::string_view state) noexcept {
    return state == "40001" || state == "40P01";
}

}  // namespace holdfast::postgresql
