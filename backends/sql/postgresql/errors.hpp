// What an SQLSTATE of a PostgreSQL server means.
#pragma once
#include <string_view>

#include "../common/server_error.hpp"

namespace holdfast::postgresql {

using sql::Error;

const sql::Errors& errors() noexcept;
inline error_code make(Error e) noexcept {
    return errors().make(e);
}

/// The code for an SQLSTATE.
Error from_state(std::string_view state) noexcept;
/// True if an answer with that SQLSTATE proves that the statement left nothing behind. Not if the
/// server ended the connection, which it may do just after the commit.
bool rolled_back(std::string_view state) noexcept;
/// True if the same statement may succeed at once.
bool worth_repeating(std::string_view state) noexcept;

}  // namespace holdfast::postgresql
