// Preloaded into holdfast: its first write of a line about a renewal throws, as an allocation might
// anywhere. Shows what an exception in the midst of a run leaves behind. With
// HOLDFAST_TEST_KILLS_GUARDIAN the guardian, holdfast's only child, is killed just before.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

extern "C" [[gnu::visibility("default")]] ssize_t write(int fd, const void* data, size_t n) {
    static std::atomic<bool> thrown{false};
    const std::string_view text(static_cast<const char*>(data), n);
    if (text.find("\"event\":\"renewed\"") != std::string_view::npos && !thrown.exchange(true)) {
        pid_t guardian = 0;
        if (std::getenv("HOLDFAST_TEST_KILLS_GUARDIAN") != nullptr &&
            std::ifstream("/proc/thread-self/children") >> guardian)
            ::kill(guardian, SIGKILL);
        throw std::runtime_error("thrown by a test");
    }
    return ::syscall(SYS_write, fd, data, n);
}
