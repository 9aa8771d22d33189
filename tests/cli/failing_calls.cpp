// Preloaded into holdfast: system calls that fail as on a machine at its limits.
// HOLDFAST_TEST_EVENTFD, HOLDFAST_TEST_THREAD: how many of these calls succeed first; a missing
// variable lets all succeed. The guardian, and the command, have other limits.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

/// Whether this call, the one after `before`, is to fail.
bool fails(const char* variable, std::atomic<int>& before) {
    static const pid_t owner = ::getpid();
    const char* const limit = std::getenv(variable);
    if (limit == nullptr || ::getpid() != owner || before++ < std::atoi(limit)) return false;
    constexpr char said[] = "a call failed\n";
    return ::write(STDERR_FILENO, said, sizeof said - 1) > 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int eventfd(unsigned first, int flags) {
    static std::atomic<int> before{0};
    if (fails("HOLDFAST_TEST_EVENTFD", before)) {
        errno = EMFILE;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_eventfd2, first, flags));
}

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*start)(void*),
                                                             void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    static std::atomic<int> before{0};
    if (fails("HOLDFAST_TEST_THREAD", before)) return EAGAIN;
    return real(thread, attributes, start, argument);
}
