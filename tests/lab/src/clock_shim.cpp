// Preloaded into a server, it moves the server's wall clock by what a file says, at any moment.
// Only the wall clock: monotonic clocks and everybody else's time stay as they are. The system
// calls are made directly, since looking up the C library's own functions allocates, which
// redis-server's allocator does not survive so early. It is never installed and needs no C++
// library.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

/// Microseconds to add, in the file that HOLDFAST_CLOCK_SHIM names; null without it.
const volatile long long* offset = nullptr;

/// getenv() would be the C library's; the variable is looked for in the process's own list.
const char* file_name() {
    constexpr char wanted[] = "HOLDFAST_CLOCK_SHIM=";
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const char* text = *entry;
        unsigned i = 0;
        while (wanted[i] != 0 && text[i] == wanted[i])
            ++i;
        if (wanted[i] == 0) return text + i;
    }
    return nullptr;
}

[[gnu::constructor]] void map_offset() {
    const char* name = file_name();
    if (name == nullptr) return;
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    void* at = mmap(nullptr, sizeof(long long), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED) offset = static_cast<const volatile long long*>(at);
}

bool is_wall_clock(clockid_t id) {
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
}

/// The same moment on a clock that is `us` ahead.
timespec moved(const timespec& t, long long us) {
    const long long sum = t.tv_sec * 1000000LL + t.tv_nsec / 1000 + us;
    return {sum / 1000000, sum % 1000000 * 1000 + t.tv_nsec % 1000};
}

/// A moment of the wall clock, not of a monotonic one, which counts from the machine's start.
bool is_wall_time(const timespec& t) {
    constexpr long long years = 20LL * 365 * 86400;
    return t.tv_sec > years;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int clock_gettime(clockid_t id, timespec* out) noexcept {
    const auto failed = static_cast<int>(syscall(SYS_clock_gettime, id, out));
    if (failed != 0 || offset == nullptr || !is_wall_clock(id)) return failed;
    *out = moved(*out, *offset);
    return 0;
}

/// Who waits until a moment of the moved clock would else wait for as long as it is ahead.
[[gnu::visibility("default")]] int pthread_cond_timedwait(pthread_cond_t* condition,
                                                          pthread_mutex_t* mutex,
                                                          const timespec* until) {
    if (!is_wall_time(*until))
        return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, until);
    const timespec real = moved(*until, offset == nullptr ? 0 : -*offset);
    return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, &real);
}

[[gnu::visibility("default")]] int gettimeofday(timeval* out, void*) noexcept {
    timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

[[gnu::visibility("default")]] time_t time(time_t* out) noexcept {
    timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    if (out != nullptr) *out = now.tv_sec;
    return now.tv_sec;
}
}
