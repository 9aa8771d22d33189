// What the program's system calls go to while a run is under way: system.cpp defines them.
#pragma once
#include <cstdint>
#include <string>

#include "descriptors.hpp"
#include "network.hpp"

namespace holdfast::sim {

/// The system that the processes of one run see.
class System {
public:
    explicit System(Kernel& k);
    ~System();
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    static System* running() noexcept;

    /// Where a connection to this address leads.
    using Dial =
        std::function<Route*(const Process&, const std::string& address, std::uint16_t port)>;
    Dial dial;
    Kernel& kernel;
    Descriptors descriptors;
};

}  // namespace holdfast::sim
