// JSON lines for --status-fd.
#include "status_fd.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>

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

void StatusFd::write(std::string_view event, boost::json::object more) {
    if (fd_ < 0) return;
    boost::json::object line{{"event", event}, {"name", clean_utf8(name_)}, {"time", wall_time()}};
    for (auto& [key, value] : more)
        line[key] = std::move(value);
    const std::string text = boost::json::serialize(line) + '\n';
    if (::write(fd_, text.data(), text.size()) < 0 && errno != EINTR) {
        warn(fmt::format("--status-fd {} cannot be written ({}): no more events go there", fd_,
                         std::strerror(errno)));
        fd_ = -1;
    }
}

}  // namespace holdfast::cli
