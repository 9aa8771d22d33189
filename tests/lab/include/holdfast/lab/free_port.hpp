// Loopback ports for servers and proxies. Several labs run on one machine at the same time (ctest
// -j, another checkout), so a port is not only looked for but also reserved.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::lab {

/// A loopback port reserved for its owner: as long as this object lives, no other lab on the
/// machine gets the number, also while nothing listens on it. The reservation ends with the
/// process.
///
/// Thread safety: none of its own.
class Port {
public:
    Port(Port&& other) noexcept;
    Port& operator=(Port&& other) noexcept;
    ~Port();

    /// The port number; 0 after a move.
    [[nodiscard]] std::uint16_t number() const noexcept { return number_; }

    /// The number as decimal text.
    [[nodiscard]] std::string text() const { return std::to_string(number_); }

private:
    friend Port free_port();
    Port(std::uint16_t number, int reservation) noexcept
        : number_(number), reservation_(reservation) {}

    std::uint16_t number_ = 0;
    int reservation_ = -1;
};

/// Reserves a loopback TCP port that nothing listens on: never the default port of a known server
/// and never one that the kernel hands to outgoing connections.
///
/// Errors: LabError when none is left. Thread safety: any thread.
[[nodiscard]] Port free_port();

}  // namespace holdfast::lab
