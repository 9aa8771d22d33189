// What it looks like when the machine, or a limit of this user, gives no more: core and the command
// say the same about it.
#pragma once
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

namespace holdfast::spi {

/// Another thread, process, descriptor or page was refused: no fault of the configuration.
inline bool is_exhausted(int system_error) noexcept {
    return system_error == EAGAIN || system_error == EMFILE || system_error == ENFILE ||
           system_error == ENOMEM;
}
inline bool is_exhausted(const std::exception& e) noexcept {
    if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return true;
    if (const auto* boost = dynamic_cast<const boost::system::system_error*>(&e))
        return boost->code().category() == boost::system::system_category() &&
               is_exhausted(boost->code().value());
    const auto* system = dynamic_cast<const std::system_error*>(&e);
    return system != nullptr && is_exhausted(system->code().value());
}

inline constexpr std::string_view exhausted_remedy =
    "Raise the limits of processes and threads (ulimit -u, pids.max), open files (ulimit -n) and "
    "memory.";

}  // namespace holdfast::spi
