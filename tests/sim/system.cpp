// System calls and threads, defined here so that the library's own code meets virtual time,
// simulated sockets and the seed's randomness wherever a run is under way on this thread, and the
// system itself everywhere else.
#include "system.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <random>
#include <utility>

namespace holdfast::sim {
namespace {

// The linker's words for where this program's code begins and ends.
extern "C" const char __executable_start, etext;  // NOLINT(bugprone-reserved-identifier)

thread_local System* running_system = nullptr;

/// Mutexes that a thread of the run has while somebody looks at its process. That thread does not
/// run meanwhile, so who looks reads beside it.
struct Beside {
    std::array<pthread_mutex_t*, 4> all{};
    std::size_t count = 0;

    bool add(pthread_mutex_t* m) noexcept {
        if (count == all.size()) return false;
        all.at(count++) = m;
        return true;
    }
    bool remove(pthread_mutex_t* m) noexcept {
        if (count == 0 || all.at(count - 1) != m) return false;
        --count;
        return true;
    }
};
thread_local constinit Beside beside;

/// A run's thread is calling, or somebody who looks at a process: not the run's own machinery.
Kernel* simulated() noexcept {
    Kernel* k = Kernel::running();
    return k != nullptr && k->process() != nullptr ? k : nullptr;
}
Kernel* on_thread() noexcept {
    Kernel* k = Kernel::running();
    return k != nullptr && k->current() != nullptr ? k : nullptr;
}
std::shared_ptr<Descriptor> open_here(int fd) {
    return fd >= Descriptors::first && running_system != nullptr
               ? running_system->descriptors.find(fd)
               : nullptr;
}
template <class T>
std::shared_ptr<T> open_as(int fd) {
    auto d = open_here(fd);
    return d && d->kind == T::own ? std::static_pointer_cast<T>(std::move(d)) : nullptr;
}
bool is_ours(int fd) noexcept {
    return fd >= Descriptors::first;
}
int failed(int why) noexcept {
    if (why == 0) return 0;
    errno = why;
    return -1;
}

Nanos nanos(const timespec& t) noexcept {
    return t.tv_sec * second + t.tv_nsec;
}
timespec timespec_of(Nanos n) noexcept {
    return {n / second, n % second};
}

template <class F>
F* next(const char* name) noexcept {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// Takes what is there, or waits for it.
ssize_t receive(const std::shared_ptr<Socket>& s, char* to, std::size_t most, int flags) {
    Kernel& k = *Kernel::running();
    const bool waits = s->blocks && (flags & MSG_DONTWAIT) == 0;
    const Nanos until = s->receive_limit > 0 ? k.now() + s->receive_limit : never;
    k.preempt();
    while (s->inbox.empty()) {
        if (s->error != 0) return failed(std::exchange(s->error, 0));
        if (s->ended) return 0;
        if (!waits || k.now() >= until) return failed(EAGAIN);
        Descriptors::wait_for({s.get()}, until);
    }
    std::size_t n = std::min(most, s->inbox.size());
    if ((flags & MSG_PEEK) == 0) {
        // Now and then in pieces, as a network has it.
        if (n > 1 && k.random().chance(50)) n = 1 + k.random().below(n - 1);
        std::memcpy(to, s->inbox.data(), n);
        s->inbox.erase(0, n);
    } else {
        std::memcpy(to, s->inbox.data(), n);
    }
    return static_cast<ssize_t>(n);
}

ssize_t put_out(const std::shared_ptr<Socket>& s, const char* from, std::size_t n) {
    Kernel& k = *Kernel::running();
    k.preempt();
    if (s->error != 0) return failed(std::exchange(s->error, 0));
    if (s->state != Socket::State::connected || s->ended || !s->connection) return failed(EPIPE);
    s->connection->send(std::string(from, n));
    return static_cast<ssize_t>(n);
}

short as_poll(std::uint32_t ready) noexcept {
    short out = 0;
    if ((ready & EPOLLIN) != 0) out = static_cast<short>(out | POLLIN);
    if ((ready & EPOLLOUT) != 0) out = static_cast<short>(out | POLLOUT);
    if ((ready & EPOLLERR) != 0) out = static_cast<short>(out | POLLERR);
    if ((ready & EPOLLHUP) != 0) out = static_cast<short>(out | POLLHUP);
    return out;
}

}  // namespace

System::System(Kernel& k) : kernel(k) {
    running_system = this;
}
System::~System() {
    running_system = nullptr;
}
System* System::running() noexcept {
    return running_system;
}

}  // namespace holdfast::sim

using namespace holdfast::sim;  // NOLINT: what follows are the system's own names

// --- clocks and randomness

extern "C" int clock_gettime(clockid_t which, timespec* out) noexcept {
    if (Kernel* k = simulated()) {
        const Process& p = *k->process();
        const Nanos shown = p.clock(k->now());
        *out = timespec_of(which == CLOCK_REALTIME ? epoch + p.wall + shown : shown);
        return 0;
    }
    static auto* const real = next<int(clockid_t, timespec*)>("clock_gettime");
    return real(which, out);
}

extern "C" ssize_t getrandom(void* out, std::size_t n, unsigned flags) {
    if (Kernel* k = simulated()) {
        auto* bytes = static_cast<unsigned char*>(out);
        for (std::size_t i = 0; i < n; ++i)
            bytes[i] = static_cast<unsigned char>(k->entropy().next());
        return static_cast<ssize_t>(n);
    }
    static auto* const real = next<ssize_t(void*, std::size_t, unsigned)>("getrandom");
    return real(out, n, flags);
}

/// The one function behind std::random_device, which would else ask the processor.
unsigned std::random_device::_M_getval() {
    unsigned value = 0;
    if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) ::abort();
    return value;
}

// The ZooKeeper client library's.
extern "C" long random() noexcept {
    if (Kernel* k = simulated()) return static_cast<long>(k->entropy().next() >> 33U);
    static auto* const real = next<long()>("random");
    return real();
}
extern "C" double drand48() noexcept {
    if (Kernel* k = simulated())
        return static_cast<double>(k->entropy().next() >> 11U) / (1ULL << 53U);
    static auto* const real = next<double()>("drand48");
    return real();
}

extern "C" pid_t getpid() noexcept {
    if (simulated() != nullptr) return 4711;
    static auto* const real = next<pid_t()>("getpid");
    return real();
}

extern "C" int gethostname(char* out, std::size_t n) noexcept {
    // Kept for the whole process by those that ask.
    std::strncpy(out, "sim", n);
    return 0;
}

// --- threads

extern "C" int pthread_create(pthread_t* out, const pthread_attr_t* how, void* (*main)(void*),
                              void* argument) noexcept {
    if (Kernel* k = on_thread()) {
        Thread* t = k->start(*k->process(), "thread", [main, argument] { main(argument); });
        *out = reinterpret_cast<pthread_t>(t);
        return 0;
    }
    using Main = void*(void*);
    static auto* const real =
        next<int(pthread_t*, const pthread_attr_t*, Main*, void*)>("pthread_create");
    return real(out, how, main, argument);
}

extern "C" pthread_t pthread_self() noexcept {
    if (Kernel* k = on_thread()) return reinterpret_cast<pthread_t>(k->current());
    static auto* const real = next<pthread_t()>("pthread_self");
    return real();
}

extern "C" int pthread_join(pthread_t t, void** result) {
    if (Kernel* k = on_thread()) return k->join(reinterpret_cast<Thread*>(t));
    static auto* const real = next<int(pthread_t, void**)>("pthread_join");
    return real(t, result);
}

extern "C" int pthread_detach(pthread_t t) noexcept {
    if (Kernel* k = on_thread()) return k->detach(reinterpret_cast<Thread*>(t)), 0;
    static auto* const real = next<int(pthread_t)>("pthread_detach");
    return real(t);
}

extern "C" int pthread_setname_np(pthread_t t, const char* name) noexcept {
    if (on_thread() != nullptr) return 0;
    static auto* const real = next<int(pthread_t, const char*)>("pthread_setname_np");
    return real(t, name);
}

extern "C" int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
    static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
    Kernel* k = on_thread();
    if (k == nullptr) {
        if (simulated() == nullptr) return real(m);
        const int rc = ::pthread_mutex_trylock(m);
        return rc == EBUSY && beside.add(m) ? 0 : rc;
    }
    // Shared libraries are not preempted: what OpenSSL locks once in a process would have a
    // program's first run go otherwise than the same run later.
    const auto* const caller = static_cast<const char*>(__builtin_return_address(0));
    if (caller >= &__executable_start && caller < &etext) k->preempt();
    // Whoever has it is not running now.
    while (::pthread_mutex_trylock(m) == EBUSY)
        k->rest(5 * us);
    return 0;
}

extern "C" int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
    static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_unlock");
    return beside.remove(m) ? 0 : real(m);
}

/// What std::stop_callback and other atomics wait with: whoever is to wake them is not running now.
extern "C" long syscall(long number, ...) noexcept {
    std::va_list more;
    va_start(more, number);
    std::array<long, 6> a{};
    for (long& one : a)
        one = va_arg(more, long);
    va_end(more);
    if (Kernel* k = on_thread(); k != nullptr && number == SYS_futex) {
        constexpr long wait = 0, wait_bitset = 9, command = 127;
        if ((a[1] & command) == wait || (a[1] & command) == wait_bitset) k->rest(5 * us);
        return 0;
    }
    static auto* const real = next<long(long, ...)>("syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

extern "C" int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
    if (Kernel* k = on_thread()) return k->wait_for(c, m), 0;
    static auto* const real = next<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
    return real(c, m);
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t which,
                                      const timespec* until) {
    if (Kernel* k = on_thread()) {
        const Nanos shown =
            which == CLOCK_REALTIME ? nanos(*until) - epoch - k->process()->wall : nanos(*until);
        return k->wait_for(c, m, k->process()->when(shown));
    }
    using F = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
    static auto* const real = next<F>("pthread_cond_clockwait");
    return real(c, m, which, until);
}

extern "C" int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m,
                                      const timespec* until) {
    if (on_thread() != nullptr) return pthread_cond_clockwait(c, m, CLOCK_REALTIME, until);
    using F = int(pthread_cond_t*, pthread_mutex_t*, const timespec*);
    static auto* const real = next<F>("pthread_cond_timedwait");
    return real(c, m, until);
}

extern "C" int pthread_cond_signal(pthread_cond_t* c) noexcept {
    if (Kernel* k = Kernel::running()) k->notify(c, false);
    static auto* const real = next<int(pthread_cond_t*)>("pthread_cond_signal");
    return real(c);
}

extern "C" int pthread_cond_broadcast(pthread_cond_t* c) noexcept {
    if (Kernel* k = Kernel::running()) k->notify(c, true);
    static auto* const real = next<int(pthread_cond_t*)>("pthread_cond_broadcast");
    return real(c);
}

// --- descriptors

extern "C" int epoll_create1(int flags) noexcept {
    if (simulated() != nullptr) return running_system->descriptors.add(std::make_shared<Epoll>());
    static auto* const real = next<int(int)>("epoll_create1");
    return real(flags);
}

extern "C" int epoll_ctl(int epoll, int what, int fd, epoll_event* wanted) noexcept {
    if (is_ours(epoll)) {
        const auto e = open_as<Epoll>(epoll);
        const auto d = open_here(fd);
        if (!e || !d) return failed(EBADF);
        return failed(e->control(what, fd, d, wanted));
    }
    static auto* const real = next<int(int, int, int, epoll_event*)>("epoll_ctl");
    return real(epoll, what, fd, wanted);
}

extern "C" int epoll_wait(int epoll, epoll_event* out, int most, int milliseconds) {
    if (is_ours(epoll)) {
        const auto e = open_as<Epoll>(epoll);
        return e ? e->wait(out, most, milliseconds) : failed(EBADF);
    }
    static auto* const real = next<int(int, epoll_event*, int, int)>("epoll_wait");
    return real(epoll, out, most, milliseconds);
}

extern "C" int eventfd(unsigned value, int flags) noexcept {
    if (simulated() != nullptr) {
        const auto made = std::make_shared<Counter>();
        made->value = value;
        return running_system->descriptors.add(made);
    }
    static auto* const real = next<int(unsigned, int)>("eventfd");
    return real(value, flags);
}

extern "C" int timerfd_create(clockid_t which, int flags) noexcept {
    if (simulated() != nullptr) return running_system->descriptors.add(std::make_shared<Timer>());
    static auto* const real = next<int(clockid_t, int)>("timerfd_create");
    return real(which, flags);
}

extern "C" int timerfd_settime(int fd, int flags, const itimerspec* wanted,
                               itimerspec* before) noexcept {
    if (is_ours(fd)) {
        const auto t = open_as<Timer>(fd);
        if (!t) return failed(EBADF);
        const Nanos shown = t->process->clock(Kernel::running()->now());
        if (before != nullptr)
            *before = {{}, timespec_of(t->due == 0 ? 0 : std::max<Nanos>(t->due - shown, 1))};
        Nanos due = nanos(wanted->it_value);
        if (due != 0 && (flags & TFD_TIMER_ABSTIME) == 0) due += shown;
        t->set(due, t);
        return 0;
    }
    static auto* const real =
        next<int(int, int, const itimerspec*, itimerspec*)>("timerfd_settime");
    return real(fd, flags, wanted, before);
}

extern "C" int close(int fd) {
    if (is_ours(fd))
        return running_system != nullptr ? failed(running_system->descriptors.close(fd)) : 0;
    static auto* const real = next<int(int)>("close");
    return real(fd);
}

extern "C" ssize_t read(int fd, void* to, std::size_t most) {
    if (is_ours(fd)) {
        if (const auto s = open_as<Socket>(fd)) return receive(s, static_cast<char*>(to), most, 0);
        std::uint64_t value = 0;
        if (const auto c = open_as<Counter>(fd)) value = std::exchange(c->value, 0);
        if (const auto t = open_as<Timer>(fd)) value = std::exchange(t->expired, false) ? 1 : 0;
        if (value == 0 || most < sizeof value) return failed(EAGAIN);
        std::memcpy(to, &value, sizeof value);
        return sizeof value;
    }
    static auto* const real = next<ssize_t(int, void*, std::size_t)>("read");
    return real(fd, to, most);
}

extern "C" ssize_t write(int fd, const void* from, std::size_t n) {
    if (is_ours(fd)) {
        if (const auto s = open_as<Socket>(fd))
            return put_out(s, static_cast<const char*>(from), n);
        if (const auto c = open_as<Counter>(fd)) {
            ++c->value;
            c->changed();
            return static_cast<ssize_t>(n);
        }
        return failed(EBADF);
    }
    static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
    return real(fd, from, n);
}

// --- sockets

extern "C" int socket(int family, int type, int protocol) noexcept {
    if (simulated() != nullptr) {
        const auto made = std::make_shared<Socket>();
        made->blocks = (type & SOCK_NONBLOCK) == 0;
        return running_system->descriptors.add(made);
    }
    static auto* const real = next<int(int, int, int)>("socket");
    return real(family, type, protocol);
}

extern "C" int connect(int fd, const sockaddr* to, socklen_t size) {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        if (!s) return failed(EBADF);
        const auto* address = reinterpret_cast<const sockaddr_in*>(to);
        std::array<char, INET_ADDRSTRLEN> text{};
        ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
        Route* route = running_system->dial(*s->process, text.data(), ntohs(address->sin_port));
        if (route == nullptr) return failed(EHOSTUNREACH);
        s->state = Socket::State::connecting;
        s->connection = std::make_shared<Connection>(*route, s);
        route->connections.push_back(s->connection);
        s->connection->open();
        return failed(EINPROGRESS);
    }
    static auto* const real = next<int(int, const sockaddr*, socklen_t)>("connect");
    return real(fd, to, size);
}

extern "C" ssize_t recv(int fd, void* to, std::size_t most, int flags) {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        return s ? receive(s, static_cast<char*>(to), most, flags) : failed(EBADF);
    }
    static auto* const real = next<ssize_t(int, void*, std::size_t, int)>("recv");
    return real(fd, to, most, flags);
}

extern "C" ssize_t send(int fd, const void* from, std::size_t n, int flags) {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        return s ? put_out(s, static_cast<const char*>(from), n) : failed(EBADF);
    }
    static auto* const real = next<ssize_t(int, const void*, std::size_t, int)>("send");
    return real(fd, from, n, flags);
}

extern "C" ssize_t recvmsg(int fd, msghdr* m, int flags) {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        return s ? receive(s, static_cast<char*>(m->msg_iov->iov_base), m->msg_iov->iov_len, flags)
                 : failed(EBADF);
    }
    static auto* const real = next<ssize_t(int, msghdr*, int)>("recvmsg");
    return real(fd, m, flags);
}

extern "C" ssize_t sendmsg(int fd, const msghdr* m, int flags) {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        if (!s) return failed(EBADF);
        std::string all;
        for (std::size_t i = 0; i < m->msg_iovlen; ++i)
            all.append(static_cast<const char*>(m->msg_iov[i].iov_base), m->msg_iov[i].iov_len);
        return put_out(s, all.data(), all.size());
    }
    static auto* const real = next<ssize_t(int, const msghdr*, int)>("sendmsg");
    return real(fd, m, flags);
}

// glibc declares that poll only writes to what it in fact reads first.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
namespace {

int poll_here(pollfd* all, nfds_t count, Nanos patience) {
    Kernel& k = *Kernel::running();
    const Nanos until = patience < 0 ? never : k.now() + patience;
    for (;;) {
        int n = 0;
        std::vector<Descriptor*> open;
        std::vector<std::shared_ptr<Descriptor>> keep;
        for (nfds_t i = 0; i < count; ++i) {
            all[i].revents = 0;
            if (all[i].fd < 0) continue;
            const auto d = open_here(all[i].fd);
            const int now = d ? as_poll(d->ready()) : POLLNVAL;
            all[i].revents =
                static_cast<short>(now & (all[i].events | POLLERR | POLLHUP | POLLNVAL));
            n += all[i].revents != 0 ? 1 : 0;
            if (d) open.push_back(d.get());
            if (d) keep.push_back(d);
        }
        if (n > 0 || k.now() >= until) return n;
        Descriptors::wait_for(open, until);
    }
}

/// A thread of a run has no descriptors but those of its run.
bool of_run(const pollfd* all, nfds_t count) noexcept {
    for (nfds_t i = 0; i < count; ++i)
        if (all[i].fd >= 0) return is_ours(all[i].fd);
    return on_thread() != nullptr;
}

}  // namespace

extern "C" int poll(pollfd* all, nfds_t count, int milliseconds) {
    if (of_run(all, count)) return poll_here(all, count, milliseconds < 0 ? -1 : milliseconds * ms);
    static auto* const real = next<int(pollfd*, nfds_t, int)>("poll");
    return real(all, count, milliseconds);
}

extern "C" int ppoll(pollfd* all, nfds_t count, const timespec* patience, const sigset_t* mask) {
    if (of_run(all, count))
        return poll_here(all, count, patience == nullptr ? -1 : nanos(*patience));
    static auto* const real = next<int(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
    return real(all, count, patience, mask);
}
#pragma GCC diagnostic pop

extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        if (!s) return failed(EBADF);
        std::memset(value, 0, *size);
        if (level == SOL_SOCKET && name == SO_ERROR)
            *static_cast<int*>(value) = std::exchange(s->error, 0);
        return 0;
    }
    static auto* const real = next<int(int, int, int, void*, socklen_t*)>("getsockopt");
    return real(fd, level, name, value, size);
}

extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        if (!s) return failed(EBADF);
        if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
            const auto* t = static_cast<const timeval*>(value);
            s->receive_limit = t->tv_sec * second + t->tv_usec * us;
        }
        return 0;
    }
    static auto* const real = next<int(int, int, int, const void*, socklen_t)>("setsockopt");
    return real(fd, level, name, value, size);
}

extern "C" int shutdown(int fd, int how) noexcept {
    if (is_ours(fd)) {
        const auto s = open_as<Socket>(fd);
        if (!s || !s->connection) return failed(s ? ENOTCONN : EBADF);
        if (how == SHUT_RDWR) s->shut_down();
        return 0;
    }
    static auto* const real = next<int(int, int)>("shutdown");
    return real(fd, how);
}

extern "C" int ioctl(int fd, unsigned long what, ...) noexcept {
    std::va_list more;
    va_start(more, what);
    void* argument = va_arg(more, void*);
    va_end(more);
    if (is_ours(fd)) {
        const auto d = open_here(fd);
        if (!d) return failed(EBADF);
        // Asio's sockets wait in its loop; who blocks says so by fcntl.
        if (what == FIONBIO) d->blocks = *static_cast<int*>(argument) == 0;
        return 0;
    }
    static auto* const real = next<int(int, unsigned long, void*)>("ioctl");
    return real(fd, what, argument);
}

extern "C" int fcntl(int fd, int what, ...) {
    std::va_list more;
    va_start(more, what);
    void* argument = va_arg(more, void*);
    va_end(more);
    if (is_ours(fd)) {
        const auto d = open_here(fd);
        if (!d) return failed(EBADF);
        if (what == F_DUPFD_CLOEXEC) return running_system->descriptors.add(d);
        if (what == F_GETFL) return O_RDWR | (d->blocks ? 0 : O_NONBLOCK);
        if (what == F_SETFL)
            d->blocks = (reinterpret_cast<std::intptr_t>(argument) & O_NONBLOCK) == 0;
        return 0;
    }
    static auto* const real = next<int(int, int, void*)>("fcntl");
    return real(fd, what, argument);
}
// The same for who is compiled for large files, as hiredis' flags have it: lanes block by it.
extern "C" int fcntl64(int fd, int what, ...) __attribute__((alias("fcntl")));
