// --status-fd: one JSON line per event, so that scripts need not guess from exit codes.
#pragma once
#include <boost/json/object.hpp>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "outbox.hpp"

namespace holdfast::cli {

/// Any thread. Never waits for a reader: what nobody reads is dropped at last, the oldest first,
/// and an event `dropped` says how many.
class StatusFd {
public:
    /// `fd` below zero: writes nothing.
    StatusFd(int fd, std::vector<std::string> names);
    /// {"event":EVENT,"name":...,"time":...} and `more`; of several locks all "names", unless
    /// `more` has the "name" of one. After an error, of which it warns, nothing.
    void write(std::string_view event, boost::json::object more = {});
    /// Writes what could not be written before.
    void flush();
    /// Gives a slow reader a second for the rest; warns of what is dropped.
    void finish();
    /// A descriptor that a forked process must close; -1 when there is none.
    int own() const noexcept { return outbox_.own(); }

private:
    std::string line(std::string_view event, boost::json::object more) const;
    void failed();

    const int fd_;
    const std::vector<std::string> names_;
    std::mutex mutex_;
    Outbox outbox_;
};

/// Now, as RFC 3339 in UTC with milliseconds. For people and logs only.
std::string wall_time();

}  // namespace holdfast::cli
