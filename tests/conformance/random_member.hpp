// A member of a random trial: threads that ask for one name as readers and writers and for another
// one's permits, in every way to ask, and tell the witness. In a process of its own, or in the
// suite's.
#pragma once
#include <cstdint>
#include <holdfast/holdfast.hpp>
#include <string>

namespace suite {

/// What all members of a trial agree on.
struct RandomTrial {
    std::string name;           ///< of readers and writers
    std::uint32_t limit = 1;    ///< of the permits
    std::uint16_t witness = 0;  ///< its port
    std::uint64_t seed = 0;     ///< of this member

    std::string permits_name() const { return name + "-permits"; }
};

/// Units of readers and writers, as the witness counts them.
inline constexpr std::uint32_t all_units = 1000;

/// Runs until the witness says that it is over. Throws when a call answers what it must not.
void run_member(const holdfast::Client&, const RandomTrial&);

}  // namespace suite
