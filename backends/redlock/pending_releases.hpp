// Releases owed to one node: of values that a request may have left there, or may still leave. They
// are sent as often as necessary.
#pragma once
#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/member.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index_container.hpp>
#include <string>

#include "holdfast/clock.hpp"
#include "requests.hpp"

namespace holdfast::redlock {

struct PendingRelease {
    Ask release;
    std::string value;
    boot_clock::time_point again;  ///< until then, a request to be undone may still arrive
    boot_clock::time_point until;  ///< from then on, the key has expired
    boot_clock::time_point due{};  ///< when to send the release; at `until`, to be forgotten
    milliseconds pause{20};
    bool answered = false;
    /// As if never sent: due at once if the node can be reached, else kept until `until`.
    void reset(bool may_send) noexcept {
        due = may_send ? boot_clock::time_point::min() : until;
        answered = false;
    }
};

/// Engine thread only. Thousands may be owed after an outage, so only open() and the begin and end
/// of a connection visit all of them.
class PendingReleases {
public:
    bool empty() const noexcept { return all_.empty(); }
    /// Whether a release is still unanswered.
    bool open() const noexcept;
    /// `may_send`: the node can be reached, so it is due at once.
    void add(Ask release, boot_clock::time_point again, boot_clock::time_point until,
             bool may_send);
    /// resume(): the node can be reached, so all are due. suspend(): it cannot, so all are kept
    /// until their end.
    void resume() { reset(true); }
    void suspend() { reset(false); }
    /// When to call send_due() next; the end of time when nothing is owed.
    boot_clock::time_point due() const noexcept;
    /// Forgets what has expired, and passes each that is due to `send`, once.
    template <class Send>
    void send_due(boot_clock::time_point now, Send send);
    /// The node has answered the release that was sent at `sent`.
    void answered(const std::string& value, boot_clock::time_point sent, bool refused,
                  boot_clock::time_point now);
    /// No request of this value is under way any more.
    void arrived(const std::string& value);
    void clear() noexcept { all_.clear(); }

private:
    void reset(bool may_send);

    struct ByValue {};
    struct ByDue {};
    boost::multi_index_container<
        PendingRelease,
        boost::multi_index::indexed_by<
            boost::multi_index::hashed_unique<
                boost::multi_index::tag<ByValue>,
                boost::multi_index::member<PendingRelease, std::string, &PendingRelease::value>>,
            boost::multi_index::ordered_non_unique<
                boost::multi_index::tag<ByDue>,
                boost::multi_index::member<PendingRelease, boot_clock::time_point,
                                           &PendingRelease::due>>>>
        all_;
};

template <class Send>
void PendingReleases::send_due(boot_clock::time_point now, Send send) {
    auto& queue = all_.get<ByDue>();
    while (!queue.empty() && queue.begin()->due <= now) {
        const auto first = queue.begin();
        if (first->until <= now) {
            queue.erase(first);
            continue;
        }
        queue.modify(first, [](PendingRelease& d) { d.due = d.until; });
        send(*first);
    }
}

}  // namespace holdfast::redlock
