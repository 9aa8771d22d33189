// A command that leaves a chain of processes: each starts the next one, in a session of its own,
// and ends at once. For three seconds they write to a file what support.stamps() reads.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>

namespace {

long long boot_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 1;
    std::signal(SIGTERM, SIG_IGN);
    const int log = ::open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    const long long end = boot_ns() + 3'000'000'000LL;
    if (::fork() != 0) {
        ::alarm(60);
        ::pause();
    }
    while (boot_ns() < end) {
        if (::fork() != 0) ::_exit(0);
        ::setsid();
        ::dprintf(log, "%d %lld\n", static_cast<int>(::getpid()), boot_ns());
    }
}
