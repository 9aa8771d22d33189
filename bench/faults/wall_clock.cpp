#include "faults/wall_clock.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.hpp"

namespace holdfast::bench {

WallClock::WallClock(std::filesystem::path file) : file_(std::move(file)) {
    const int fd = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void* at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof *offset_us_) == 0)
        at = mmap(nullptr, sizeof *offset_us_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (at == MAP_FAILED) throw SelfCheck("no file for a server's clock: " + file_.string());
    offset_us_ = static_cast<volatile long long*>(at);
    set(std::chrono::milliseconds(0));
}

WallClock::~WallClock() {
    munmap(const_cast<long long*>(offset_us_), sizeof *offset_us_);
}

std::vector<std::pair<std::string, std::string>> WallClock::environment() const {
    const auto shim =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libholdfast-clock-shim.so";
    if (!std::filesystem::exists(shim)) throw SelfCheck("the clock shim was not built");
    return {{"LD_PRELOAD", shim.string()}, {"HOLDFAST_CLOCK_SHIM", file_.string()}};
}

void WallClock::set(std::chrono::milliseconds ahead) {
    *offset_us_ = 1000LL * ahead.count();
}

std::chrono::milliseconds ahead(const lab::RedisServer& server) {
    using namespace std::chrono;
    const auto reply = server.cli({"TIME"});
    if (reply.elements.size() != 2) throw SelfCheck("TIME was not answered");
    const auto theirs = seconds(std::stoll(reply.elements[0].text)) +
                        microseconds(std::stoll(reply.elements[1].text));
    const auto ours = system_clock::now().time_since_epoch();
    return duration_cast<milliseconds>(theirs - ours);
}

}  // namespace holdfast::bench
