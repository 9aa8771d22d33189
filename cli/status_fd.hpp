// --status-fd: one JSON line per event, so that scripts need not guess from exit codes.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace holdfast::cli {

class StatusFd {
public:
    /// `fd` below zero: writes nothing.
    StatusFd(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
    /// {"event":EVENT,"name":...,"time":...} and `more`. Errors are ignored after one warning.
    void write(std::string_view event, boost::json::object more = {});

private:
    int fd_;
    std::string name_;
};

/// Now, as RFC 3339 in UTC with milliseconds. For people and logs only.
std::string wall_time();

}  // namespace holdfast::cli
