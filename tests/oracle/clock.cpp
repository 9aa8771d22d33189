#include "clock.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<long long> ahead_ms{0};

}  // namespace

// In place of the C library's, for the whole program.
extern "C" int clock_gettime(clockid_t id, timespec* out) noexcept {
    const auto failed = static_cast<int>(::syscall(SYS_clock_gettime, id, out));
    const bool used_for_time = id != CLOCK_PROCESS_CPUTIME_ID && id != CLOCK_THREAD_CPUTIME_ID;
    if (failed == 0 && used_for_time) {
        const long long ms = ahead_ms.load();
        out->tv_sec += ms / 1000;
        out->tv_nsec += ms % 1000 * 1'000'000;
        if (out->tv_nsec >= 1'000'000'000) {
            out->tv_nsec -= 1'000'000'000;
            ++out->tv_sec;
        }
    }
    return failed;
}

namespace oracle {

void pass(holdfast::milliseconds time,
          const std::vector<std::unique_ptr<holdfast::lab::WallClock>>& servers) {
    const long long ms = ahead_ms += time.count();
    for (const auto& server : servers)
        server->set(holdfast::milliseconds(ms));
}

}  // namespace oracle
