// One step of a random schedule on one name: a verb of one of a few clients, an operator's call, or
// time that passes.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace oracle {

namespace hf = holdfast;
namespace spi = hf::spi;

/// How many clients there are; each has at most one acquisition at a time.
inline constexpr int clients = 5;

struct Operation {
    enum class Kind : std::uint8_t {
        attempt,   ///< also once more, as after a lost answer
        withdraw,  ///< also of a grant, whose answer was lost
        renew,
        downgrade,
        release,  ///< also once more
        begin,    ///< the client gives up its acquisition, whatever became of it, and has a new one
        break_lock,
        request_release,
        inspect,
        pass,
        count_
    };
    Kind kind{};
    int client = 0;
    spi::Units units;  ///< of a new acquisition, with the three lengths
    hf::milliseconds ttl{}, lock_delay{}, min_hold{};
    bool queue = false;       ///< attempt: it waits
    bool lane = false;        ///< attempt without waiting, release: over the blocking path
    bool all = false;         ///< break, request: all holders, else the client's
    bool now = false;         ///< break
    bool abandon = false;     ///< release
    hf::milliseconds time{};  ///< before it

    std::string text() const;
};

/// A schedule of so many steps. The first of them decide which kind of lock the name is.
std::vector<Operation> schedule(std::mt19937& random, int steps, const hf::Capabilities&);

}  // namespace oracle
