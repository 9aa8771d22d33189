// JSON lines for --status-fd.
#include "status_fd.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "json_text.hpp"
#include "message.hpp"

namespace holdfast::cli {

std::string wall_time() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    std::tm parts{};
    ::gmtime_r(&now.tv_sec, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return fmt::format("{}.{:03}Z", text, now.tv_nsec / 1'000'000);
}

StatusFd::StatusFd(int fd, std::vector<std::string> names)
    : fd_(fd), names_(std::move(names)), outbox_(fd, [this](std::size_t n) {
          return line("dropped", {{"count", n}});
      }) {}

std::string StatusFd::line(std::string_view event, boost::json::object more) const {
    boost::json::object o{{"event", event}};
    if (names_.size() == 1) {
        o["name"] = clean_utf8(names_.front());
    } else if (!more.contains("name")) {
        boost::json::array all;
        for (const std::string& n : names_)
            all.emplace_back(clean_utf8(n));
        o["names"] = std::move(all);
    }
    o["time"] = wall_time();
    for (auto& [key, value] : more)
        o[key] = std::move(value);
    return json_text(o) + '\n';
}

void StatusFd::write(std::string_view event, boost::json::object more) {
    if (fd_ < 0) return;
    const std::lock_guard hold(mutex_);
    if (!outbox_.add(line(event, std::move(more)))) failed();
}

void StatusFd::flush() {
    const std::lock_guard hold(mutex_);
    if (!outbox_.flush()) failed();
}

void StatusFd::finish() {
    const std::lock_guard hold(mutex_);
    const std::size_t dropped = outbox_.drain(milliseconds(1000));
    if (dropped > 0) warn(fmt::format("--status-fd {}: dropped {} unread events", fd_, dropped));
}

void StatusFd::failed() {
    warn(fmt::format("cannot write to --status-fd {} ({}): writing no more events", fd_,
                     std::strerror(errno)));
}

}  // namespace holdfast::cli
