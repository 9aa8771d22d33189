// The clocks of the lease table: boot time decides who holds, the wall clock only gives tokens.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast::sqlite {

/// Microseconds of the machine's CLOCK_BOOTTIME, the same in every process of this kernel: the
/// offset of a time namespace is taken out.
std::int64_t boot_us() noexcept;

/// The kernel's boot id. A lease of another boot id has run out: its holder is gone.
const std::string& boot_id();

/// Microseconds since 1970 for tokens. Tests set the pointer to make the clock jump.
extern std::int64_t (*wall_us)() noexcept;

}  // namespace holdfast::sqlite
