// What a round has to know of the nodes, and no more: so a test can be the nodes.
#pragma once
#include <cstdint>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

namespace holdfast::redlock {

/// More than half: two of them always share a node. The one place that says so.
constexpr std::size_t majority(std::size_t nodes) noexcept {
    return nodes / 2 + 1;
}

class Voters {
public:
    virtual ~Voters() = default;
    virtual std::size_t size() const noexcept = 0;
    std::size_t quorum() const noexcept { return majority(size()); }
    /// Longer up than any lease of before its start can last.
    virtual bool votes(std::size_t node, boot_clock::time_point now) const noexcept = 0;
    /// A majority is there, if only to say that it cannot now (nodes that may not vote yet).
    virtual bool answers() const noexcept = 0;
    /// The configuration does not fit the servers: nothing may be granted. `detail` then says why.
    virtual error_code refused(std::string* detail) const = 0;
    /// A token that is most likely higher than any before: the nodes' time, and more than the last
    /// one this client has seen. Whether it is one, the nodes decide. 0: the time is not known yet.
    virtual std::uint64_t propose(boot_clock::time_point now) const = 0;
    virtual void saw(std::uint64_t token) noexcept = 0;
    /// "127.0.0.1:7001"
    virtual const std::string& where(std::size_t node) const noexcept = 0;
    /// Why it cannot vote at present, for people; empty: nothing is known against it.
    virtual std::string trouble(std::size_t node, boot_clock::time_point now) const = 0;
};

}  // namespace holdfast::redlock
