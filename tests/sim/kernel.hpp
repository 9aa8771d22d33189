// Virtual time and the threads that run in it. All threads of the simulated processes are contexts
// on one thread of the system, of which one runs at a time; whatever happens is an event with a
// moment, and the seed decides the order of those that could happen at once.
#pragma once
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

using Nanos = std::int64_t;
inline constexpr Nanos us = 1'000, ms = 1'000'000, second = 1'000'000'000;
inline constexpr Nanos never = std::int64_t{1} << 62;
inline constexpr Nanos epoch =
    1'790'000'000 * second;                    ///< what a clock on the wall shows more than others
inline constexpr Nanos right = 1500 * second;  ///< of machines that agree, at the start

/// Numbers from a seed, the same everywhere.
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
    std::uint64_t next() noexcept;
    /// Below `n`, which is not zero.
    std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
    Nanos between(Nanos from, Nanos to) noexcept {
        return from + static_cast<Nanos>(below(static_cast<std::uint64_t>(to - from + 1)));
    }
    bool chance(unsigned of_thousand) noexcept { return below(1000) < of_thousand; }

private:
    std::uint64_t state_;
};

/// What has a clock of its own and can stand still: a client's machine, or a server's.
struct Process {
    std::string name;
    Nanos then = 0, local = 0;  ///< its clock showed `local` at `then`
    Nanos ppm = 0;              ///< how much faster it runs, in millionths
    Nanos wall = 0;             ///< its clock on the wall was set so far from its own
    Nanos frozen_until = 0;
    Nanos starved_until = 0;  ///< one of its threads gets no processor
    Nanos frozen = 0;         ///< or starved; altogether, by its own clock
    bool dead = false;
    bool far = false;  ///< from the servers: an answer takes nearly as long as a try of its may

    Nanos clock(Nanos now) const noexcept {
        return local + (now - then) + (now - then) * ppm / 1'000'000;
    }
    /// When its clock shows at least this, since it last jumped.
    Nanos when(Nanos shown) const noexcept;
    void jump(Nanos now, Nanos by) noexcept;
    bool stands(Nanos now) const noexcept { return dead || now < frozen_until; }
    /// Until then what it does may be late.
    Nanos late_until() const noexcept { return std::max(frozen_until, starved_until); }
};

class Thread;

/// One run.
class Kernel {
public:
    explicit Kernel(std::uint64_t seed);
    ~Kernel();
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    /// That of this thread of the system; null: none runs.
    static Kernel* running() noexcept;

    Nanos now() const noexcept { return now_; }
    Random& random() noexcept { return random_; }
    /// What the processes themselves take for random.
    Random& entropy() noexcept { return entropy_; }
    void at(Nanos moment, std::function<void()>);
    void after(Nanos pause, std::function<void()> f) { at(now_ + pause, std::move(f)); }

    Thread* start(Process&, std::string name, std::function<void()> main);
    Thread* current() const noexcept { return current_; }
    /// "client1.worker0"
    const std::string& current_name() const;
    /// Whose clock is read: that of the thread that runs, or of whoever is looked at.
    Process* process() const noexcept;
    void look_as(Process* p) noexcept { looked_at_ = p; }

    /// The current thread waits until it is woken, or until then. It may be woken for nothing.
    /// False: the moment has come.
    bool block(Nanos until);
    void wake(Thread*);
    /// One of the threads that the library has made there, by number, gets no processor until then.
    void starve(Process&, std::size_t number, Nanos until);
    /// Threads of a dead process go on, so that what they own is freed.
    void revive(Process&);
    void rest(Nanos pause);
    /// The current thread may lose the processor here.
    void preempt();

    /// Does the next thing; false: nothing is left to do.
    bool step();
    std::uint64_t steps() const noexcept { return steps_; }
    std::size_t threads() const noexcept { return live_; }
    std::string threads_left() const;

    /// Of a thousand chances to lose the processor so many are taken.
    unsigned preemptions = 0;
    /// How long a thread waits for the processor, mostly.
    Nanos latency = 30 * us;
    /// And rarely.
    Nanos longest_latency = 2 * ms;

    // --- traces
    bool tracing = false;
    std::string trace_text;
    /// One line.
    void trace(std::string_view who, std::string_view what);

    // --- for system calls
    int join(Thread*);
    void detach(Thread*);
    void wait_for(pthread_cond_t*, pthread_mutex_t*);
    int wait_for(pthread_cond_t*, pthread_mutex_t*, Nanos until);
    void notify(pthread_cond_t*, bool all);

private:
    struct Event {
        Nanos moment;
        std::uint64_t number;
        std::function<void()> what;
        bool operator<(const Event& other) const noexcept {
            return moment != other.moment ? moment > other.moment : number > other.number;
        }
    };
    struct Waiter {
        pthread_cond_t* on;
        Thread* thread;
        bool notified;
    };
    void resume(Thread*);
    void enter(Thread*);
    void leave();
    void entry();
    Nanos delay();

    Nanos now_ = 0;
    std::uint64_t numbers_ = 0, steps_ = 0;
    Random random_, entropy_;
    std::priority_queue<Event> events_;
    std::vector<std::unique_ptr<Thread>> all_;
    std::vector<Waiter*> waiters_;
    std::size_t live_ = 0;
    Thread* current_ = nullptr;
    Process* looked_at_ = nullptr;
    struct Main;
    std::unique_ptr<Main> main_;
};

}  // namespace holdfast::sim
