// An error with its text, and a value or such an error.
#pragma once
#include <boost/assert/source_location.hpp>
#include <boost/system/system_error.hpp>
#include <string>
#include <utility>

#include "holdfast/error.hpp"

namespace holdfast::spi {

/// Why something failed: a code for programs, and for people what the server or the system says of
/// it. True when there is an error.
struct Failure {
    Failure() = default;
    Failure(error_code code, std::string text = {}) noexcept : why(code), detail(std::move(text)) {}
    Failure(errc code, std::string text = {}) noexcept
        : Failure(make_error_code(code), std::move(text)) {}
    explicit operator bool() const noexcept { return static_cast<bool>(why); }
    /// The text, or where there is none what the code says.
    std::string text() const { return detail.empty() ? why.message() : detail; }

    error_code why;
    std::string detail;  ///< holds no secret; may be empty
};

/// A value, or why there is none. value() throws boost::system::system_error.
template <class T>
using Answer = boost::system::result<T, Failure>;

[[noreturn]] inline void throw_exception_from_error(const Failure& f,
                                                    const boost::source_location&) {
    throw boost::system::system_error(f.why, f.detail);
}

}  // namespace holdfast::spi
