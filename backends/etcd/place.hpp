// One owner's key at the server, as its client knows it.
#pragma once
#include <memory>
#include <string>

#include "keys.hpp"

namespace holdfast::etcd {

struct Place {
    enum class State : std::uint8_t { asked, queued, held, gone };
    std::string owner, line, key;
    std::string value;  ///< what write_entry makes of it: a change compares this
    spi::Units units;   ///< as they stand in the value
    milliseconds lock_delay{0};
    bool asked = false;          ///< to release it: stands in the value, too
    std::string marks;           ///< see marks.hpp; empty: none are kept
    std::int64_t created = 0;    ///< the fencing token; 0: not known to be there
    std::int64_t modified = 0;   ///< a late request that would change it compares this
    std::int64_t lease = 0;      ///< to which it is attached, as far as is known
    bool lease_certain = false;  ///< and no request that would change it is unanswered
    State state = State::asked;
    boot_clock::time_point checked{};  ///< its line was last looked after
    boot_clock::time_point valid_until{};
    bool doubt = false;  ///< a request that makes the key was not answered

    /// The value for a key of these units.
    std::string value_with(const spi::Units&) const;
    /// False: what stands there is none of this owner's grants, or it was revoked.
    bool learn(std::string_view value_there);
};
using PlacePtr = std::shared_ptr<Place>;

}  // namespace holdfast::etcd
