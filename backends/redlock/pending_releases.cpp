#include "pending_releases.hpp"

#include <algorithm>

namespace holdfast::redlock {
namespace {

constexpr milliseconds pause_at_most{500}, after_refusal{250};

}  // namespace

bool PendingReleases::open() const noexcept {
    return std::any_of(all_.begin(), all_.end(),
                       [](const PendingRelease& d) { return !d.answered; });
}

void PendingReleases::add(Ask release, boot_clock::time_point again, boot_clock::time_point until,
                          bool may_send) {
    auto& values = all_.get<ByValue>();
    std::string value = release.value();
    auto at = values.find(value);
    if (at == values.end()) at = values.insert({release, std::move(value), again, until}).first;
    values.modify(at, [&](PendingRelease& d) {
        d.release = std::move(release);
        d.again = std::max(d.again, again);
        d.until = std::max(d.until, until);
        d.reset(may_send);
    });
}

void PendingReleases::reset(bool may_send) {
    for (auto at = all_.begin(); at != all_.end(); ++at)
        all_.modify(at, [may_send](PendingRelease& d) { d.reset(may_send); });
}

void PendingReleases::arrived(const std::string& value) {
    auto& values = all_.get<ByValue>();
    const auto at = values.find(value);
    if (at == values.end()) return;
    // What is under way came after that request, over the same connection.
    values.modify(at, [](PendingRelease& d) {
        d.again = boot_clock::time_point::min();
        if (d.answered) d.due = d.again;
    });
}

boot_clock::time_point PendingReleases::due() const noexcept {
    const auto& queue = all_.get<ByDue>();
    return queue.empty() ? boot_clock::time_point::max() : queue.begin()->due;
}

void PendingReleases::answered(const std::string& value, boot_clock::time_point sent, bool refused,
                               boot_clock::time_point now) {
    auto& values = all_.get<ByValue>();
    const auto at = values.find(value);
    if (at == values.end()) return;
    if (!refused && at->again <= sent) {
        values.erase(at);
        return;
    }
    values.modify(at, [&](PendingRelease& d) {
        d.answered = true;
        d.due = std::min(d.until, refused ? now + after_refusal : std::min(d.again, now + d.pause));
        d.pause = std::min(d.pause * 2, pause_at_most);
    });
}

}  // namespace holdfast::redlock
