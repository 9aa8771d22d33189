// One owner's key at the server, as this client knows it.
#pragma once
#include <memory>
#include <string>

#include "keys.hpp"

namespace holdfast::etcd {

struct OwnerState {
    enum class State : std::uint8_t { asked, queued, held, gone };
    std::string owner, line, key;
    std::string value;  ///< made by write_entry; a change compares it
    spi::Units units;   ///< as in the value
    milliseconds lock_delay{0};
    bool asked = false;          ///< its release was requested; also in the value
    std::string marks;           ///< see marks.hpp; empty: no marks
    std::string tombstone;       ///< see tombstone_of
    std::int64_t created = 0;    ///< the fencing token; 0: not known to exist
    std::int64_t modified = 0;   ///< compared by late requests that would change the key
    std::int64_t lease = 0;      ///< the lease that it is attached to, as far as is known
    bool lease_certain = false;  ///< `lease` is certain: no request that changes it is unanswered
    State state = State::asked;
    boot_clock::time_point checked{};  ///< when its line was last checked
    boot_clock::time_point valid_until{};
    bool perhaps = false;        ///< a request that makes the key may have been executed
    bool doubt = false;          ///< such a request was not answered, and may still be executed
    bool waits_at_once = false;  ///< such requests make it on the waiters' lease

    bool writes_marks() const noexcept { return !marks.empty() && units.exclusive(); }
    /// The value of the key with these units, on a lease that lasts for the lock_delay as well.
    std::string value_with(const spi::Units&) const;
    /// ... and while it waits, on a lease that has no part of a lock_delay.
    std::string waiting_value() const;
    /// The value of the key after the holder was revoked.
    std::string revoked_value() const;
    /// False: the value there is not a grant of this owner, or was revoked.
    bool learn(std::string_view value_there);
};
using OwnerStatePtr = std::shared_ptr<OwnerState>;

/// Of an owner that has asked for nothing yet.
OwnerStatePtr make_owner_state(const Options&, const spi::Attempt&);
/// What a `place` of core's refers to.
inline OwnerStatePtr state_of(const std::shared_ptr<void>& place) {
    return std::static_pointer_cast<OwnerState>(place);
}

}  // namespace holdfast::etcd
