// The last renewal of each holder, as somebody sees it who looks again and again: no server keeps
// its time, but a renewal moves the end of the lease.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/clock.hpp"

namespace holdfast::cli {

/// Of one name. Nothing is known of a holder whose server does not count the time left down
/// (ZooKeeper), or that has no time limit.
class Renewals {
public:
    struct Seen {
        bool renewed = false;
        /// Renewed: at most this long before the last look. Else: no renewal for at least so long.
        milliseconds ago{0};
    };
    /// The answer to a question that was sent at `asked` and answered at `answered`.
    void look(const std::vector<Holder>&, boot_clock::time_point asked,
              boot_clock::time_point answered);
    /// As of the last look; nothing when one look says nothing, or none can.
    std::optional<Seen> of(const std::string& owner) const;

private:
    struct Record {
        milliseconds left{0};                    ///< at the last look
        boot_clock::time_point latest_end;       ///< of the lease, as far as that look says
        boot_clock::time_point asked, answered;  ///< the last look
        boot_clock::time_point since;            ///< the first look, or the last before a renewal
        bool renewed = false, known = false;
    };
    std::map<std::string, Record> records_;
};

}  // namespace holdfast::cli
