// The raw floors as contenders, for the scenarios that measure beside them.
#pragma once
#include <filesystem>

#include "floors/trace.hpp"
#include "measure/rounds.hpp"

namespace holdfast::bench {

/// Whole passes of a trace, at all of these servers at once; over TLS if there is a file of an
/// authority. Errors: SelfCheck.
Contender replay(const std::vector<std::uint16_t>& ports, Trace,
                 const std::filesystem::path& ca_file = {});

/// The documents' two commands for so many names at once. Errors: SelfCheck.
Contender plain_pairs(const std::vector<std::uint16_t>& ports, std::size_t names = 1,
                      const std::filesystem::path& ca_file = {});

/// Of a floor whose cycle() is one acquire and release.
template <class Floor, class... Args>
Contender cycles_of(const Args&... args) {
    auto floor = std::make_shared<Floor>(args...);
    return {{}, {}, [floor] {
                floor->cycle();
                return std::size_t{1};
            }};
}

}  // namespace holdfast::bench
