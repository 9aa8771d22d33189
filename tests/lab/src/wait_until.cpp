// The pause itself is a ppoll on no descriptors: it needs no lock, and a signal merely ends it
// early.
#include "holdfast/lab/wait_until.hpp"

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {

void pause_between_looks(unsigned round, std::chrono::nanoseconds left) {
    using namespace std::chrono_literals;
    const std::chrono::nanoseconds step = 200us * (1U << std::min(round / 4, 6U));
    const auto pause = std::min({step, std::chrono::nanoseconds(10ms), left});
    timespec time{};
    time.tv_sec = 0;
    time.tv_nsec = static_cast<long>(pause.count());
    ::ppoll(nullptr, 0, &time, nullptr);
}

void throw_cap_reached(std::string_view what, std::chrono::nanoseconds cap) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(cap).count();
    throw LabError("not within " + std::to_string(ms) + " ms: " + std::string(what));
}

}  // namespace holdfast::lab::detail
