#include "holdfast/lab/wall_clock.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/redis_server.hpp"

namespace holdfast::lab {

WallClock::WallClock(std::filesystem::path file) : file_(std::move(file)) {
    const int fd = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void* at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof *offset_us_) == 0)
        at = mmap(nullptr, sizeof *offset_us_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (at == MAP_FAILED) throw LabError("no file for a server's clock: " + file_.string());
    offset_us_ = static_cast<volatile long long*>(at);
}

WallClock::~WallClock() {
    munmap(const_cast<long long*>(offset_us_), sizeof *offset_us_);
}

std::vector<std::pair<std::string, std::string>> WallClock::environment() const {
    return {{"LD_PRELOAD", HOLDFAST_LAB_CLOCK_SHIM}, {"HOLDFAST_CLOCK_SHIM", file_.string()}};
}

void WallClock::set(std::chrono::milliseconds ahead) {
    *offset_us_ = 1000LL * ahead.count();
}

std::chrono::milliseconds ahead(const RedisServer& server) {
    using namespace std::chrono;
    const auto reply = server.cli({"TIME"});
    if (reply.elements.size() != 2) throw LabError("TIME was not answered");
    const auto theirs = seconds(std::stoll(reply.elements[0].text)) +
                        microseconds(std::stoll(reply.elements[1].text));
    const auto ours = system_clock::now().time_since_epoch();
    return duration_cast<milliseconds>(theirs - ours);
}

}  // namespace holdfast::lab
