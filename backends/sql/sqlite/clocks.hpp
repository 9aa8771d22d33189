// The clocks of the lease table: boot time decides when a lease ends; the wall clock only gives
// tokens.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast::sqlite {

/// Microseconds of the machine's CLOCK_BOOTTIME, without the offset of a time namespace, so the
/// same in every process of this kernel. Meaningless if boot_clock_known() is false.
std::int64_t boot_us() noexcept;

/// False if the offset of this process' time namespace cannot be read.
bool boot_clock_known() noexcept;

/// The id of this boot in /proc; empty if it cannot be read. Containers may see an id of their own,
/// so it decides nothing about leases.
const std::string& boot_id();

/// Microseconds since 1970, for tokens. Tests set the pointer to make the clock jump.
extern std::int64_t (*wall_us)() noexcept;

}  // namespace holdfast::sqlite
