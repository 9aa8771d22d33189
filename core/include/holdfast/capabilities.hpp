// What a deployment promises, as data. The conformance suite asserts it in both directions,
// `holdfast backends` prints it, and a configuration can require it (`require = ["fencing"]`).
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "holdfast/export.hpp"

namespace holdfast {

enum class Capability : std::uint8_t {
    fencing,                     ///< a strictly increasing token with every grant
    fifo,                        ///< first come, first served among Holdfast's waiters
    notified,                    ///< waiters are notified of a release instead of polling for it
    cross_process,               ///< excludes other processes
    cross_host,                  ///< excludes other machines
    renewal,                     ///< a lease can be kept beyond its ttl
    previous_holder,             ///< tells released, abandoned and crashed apart
    inspect,                     ///< shows the holder and the waiters
    list,                        ///< lists the names that are held
    break_lock,                  ///< an operator can revoke a lease
    survives_client_clock_jump,  ///< the client's wall clock decides nothing
    survives_server_crash,       ///< grants and tokens survive a crash of the server
    survives_failover,           ///< grants and tokens survive a switch to another server
    shared,                      ///< shared_mutex
    semaphore,                   ///< permits
    downgrade,                   ///< from exclusive to shared without a gap
    lock_delay,                  ///< LockOptions::lock_delay
    min_hold,                    ///< LockOptions::min_hold
    release_request,             ///< a holder can be asked to release
    watch,                       ///< observers of an election are notified instead of polling
    count_
};

/// How much of exclusion is left when servers and clocks misbehave (docs/guarantees.md).
enum class SafetyClass : std::uint8_t {
    a,          ///< consensus: no two holders, whatever crashes
    b,          ///< one durable primary: no two holders unless the server's clock jumps
    c,          ///< timing assumptions among several servers
    d,          ///< a crash or an asynchronous failover can give the lock twice
    in_process  ///< one process only
};

/// A set of Capability, and the safety class. A trivially copyable value.
class Capabilities {
public:
    constexpr Capabilities() noexcept = default;
    constexpr Capabilities(SafetyClass c, std::initializer_list<Capability> has) noexcept
        : safety(c) {
        for (const Capability x : has)
            set(x);
    }
    constexpr bool has(Capability c) const noexcept { return ((bits_ >> index(c)) & 1U) != 0; }
    constexpr void set(Capability c, bool on = true) noexcept {
        bits_ = on ? bits_ | (1U << index(c)) : bits_ & ~(1U << index(c));
    }
    SafetyClass safety = SafetyClass::d;

private:
    static constexpr unsigned index(Capability c) noexcept { return static_cast<unsigned>(c); }
    std::uint32_t bits_ = 0;
};

/// "fencing", "break_lock", ...: the spelling in configuration and reports.
HOLDFAST_EXPORT std::string_view to_string(Capability) noexcept;
HOLDFAST_EXPORT std::optional<Capability> capability_from(std::string_view) noexcept;
/// "A" to "D", or "in-process".
HOLDFAST_EXPORT std::string_view to_string(SafetyClass) noexcept;

}  // namespace holdfast
