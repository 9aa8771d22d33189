// How a call of the C interface failed, and how its caller is told.
#pragma once
#include <string>
#include <string_view>

#include "../include/holdfast.h"
#include "holdfast/error.hpp"

namespace holdfast::c {

struct Failure {
    Failure() = default;
    Failure(errc e, std::string what)
        : code(static_cast<int>(e)), native(code), words(std::move(what)) {}
    Failure(error_code, const Diagnostics& = {});
    Failure(hf_code c, std::string what) : code(c), words(std::move(what)) {}

    int code = HF_OK;
    int native = 0;
    std::string words;
};

/// Copies as much as there is room for, in whole characters, and ends it with NUL.
void write(char* to, std::size_t room, std::string_view text) noexcept;
/// Writes it to `error` unless that is null or there is none. Returns the code.
int tell(hf_error* error, const Failure&) noexcept;
/// For a handler of `catch`.
Failure of_current_exception();

/// Calls `f`, which returns a Failure, and returns its code.
template <class F>
int guarded(hf_error* error, F f) noexcept {
    try {
        return tell(error, f());
    } catch (...) {
        try {
            return tell(error, of_current_exception());
        } catch (...) {
            return HF_EXHAUSTED;
        }
    }
}

}  // namespace holdfast::c
