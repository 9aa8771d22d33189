// What an error number of a server, or of libmariadb, means.
#pragma once
#include "../common/server_error.hpp"

namespace holdfast::mysql {

using sql::Error;

const sql::Errors& errors() noexcept;
inline error_code make(Error e) noexcept {
    return errors().make(e);
}

/// The code for an error number.
Error from_number(unsigned number) noexcept;
/// Whether libmariadb says it, not the server.
bool of_client(unsigned number) noexcept;
/// Whether it is only about a statement that was, or is to be, prepared: nothing was executed.
bool of_preparing(unsigned number) noexcept;
/// True if an answer with that number proves that the statement left nothing behind. Not if the
/// connection ended, or the commit failed.
bool rolled_back(unsigned number) noexcept;
/// True if the same statement may succeed at once.
bool worth_repeating(unsigned number) noexcept;

}  // namespace holdfast::mysql
