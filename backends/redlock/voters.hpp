// All that a round needs to know of the nodes, so that a test can replace them.
#pragma once
#include <cstdint>
#include <string>

#include "../resp/majority.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/spi/failure.hpp"

namespace holdfast::redlock {

using resp::majority;

class Voters {
public:
    virtual ~Voters() = default;
    virtual std::size_t size() const noexcept = 0;
    std::size_t quorum() const noexcept { return majority(size()); }
    /// It has been up for longer than any lease from before its start can last.
    virtual bool votes(std::size_t node, boot_clock::time_point now) const noexcept = 0;
    /// A majority answers, even if it cannot grant now (nodes that may not vote yet).
    virtual bool answers() const noexcept = 0;
    /// Set when the configuration does not fit the servers, so nothing may be granted.
    virtual spi::Failure refused() const = 0;
    /// A token that is probably higher than any before: the nodes' time, and above the last one
    /// that this client has seen. The nodes decide. 0: the time is not known yet.
    virtual std::uint64_t propose(boot_clock::time_point now) const = 0;
    virtual void saw(std::uint64_t token) noexcept = 0;
    /// "127.0.0.1:7001"
    virtual const std::string& where(std::size_t node) const noexcept = 0;
    /// Why it cannot vote at present, for people; empty: no known reason.
    virtual std::string trouble(std::size_t node, boot_clock::time_point now) const = 0;
};

}  // namespace holdfast::redlock
