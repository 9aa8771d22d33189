#include "kernel.hpp"

#include <cxxabi.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/asio/detail/thread_context.hpp>
#include <boost/asio/detail/thread_info_base.hpp>
#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

// Which loops a thread is in: Asio keeps it for the thread of the system, and we have many threads
// on one. The way to a private member that the language allows: an explicit instantiation.
using Stack = boost::asio::detail::call_stack<boost::asio::detail::thread_context,
                                              boost::asio::detail::thread_info_base>;
using Top = boost::asio::detail::tss_ptr<Stack::context>;

template <Top* top>
struct Opened {
    friend Top& asio_loops() { return *top; }
};
Top& asio_loops();
template struct Opened<&Stack::top_>;

}  // namespace

namespace holdfast::sim {
namespace {

// Without boost::context::fiber's unwinding: a killed process' threads never run again.
namespace fcontext = boost::context::detail;

thread_local Kernel* running_kernel = nullptr;

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_size = 1U << 20U;
#else
constexpr std::size_t stack_size = 256U << 10U;
#endif

/// Kept from run to run: making one costs three system calls.
class Stacks {
public:
    static Stacks& of_thread() {
        thread_local Stacks all;
        return all;
    }
    void* take() {
        if (free_.empty()) {
            void* made = ::mmap(nullptr, stack_size + guard, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (made == MAP_FAILED) throw std::runtime_error("no room for a stack");
            ::mprotect(made, guard, PROT_NONE);
            return static_cast<char*>(made) + guard;
        }
        void* one = free_.back();
        free_.pop_back();
        return one;
    }
    void give_back(void* stack) { free_.push_back(stack); }
    ~Stacks() {
        for (void* one : free_)
            ::munmap(static_cast<char*>(one) - guard, stack_size + guard);
    }

private:
    static constexpr std::size_t guard = 4096;
    std::vector<void*> free_;
};

/// What the system keeps for each of its threads, and we for each of ours.
struct Kept {
    Stack::context* loops = nullptr;
    struct {
        void* caught = nullptr;
        unsigned uncaught = 0;
    } exceptions;

    void save() noexcept {
        loops = asio_loops();
        std::memcpy(static_cast<void*>(&exceptions), abi::__cxa_get_globals(), sizeof exceptions);
    }
    void restore() const noexcept {
        asio_loops() = loops;
        std::memcpy(reinterpret_cast<void*>(abi::__cxa_get_globals()), &exceptions,
                    sizeof exceptions);
    }
};

}  // namespace

class Thread {
public:
    enum class State : std::uint8_t { ready, runs, waits, ended };
    std::string name;
    Process* process = nullptr;
    std::function<void()> main;
    State state = State::ready;
    std::uint64_t waits = 0;
    bool timed_out = false, detached = false, held = false;
    Nanos starved_until = 0;
    Thread* joins = nullptr;  ///< who waits for its end
    fcontext::fcontext_t context = nullptr;
    void* stack = nullptr;
    void* fake_stack = nullptr;
    Kept kept;
};

struct Kernel::Main {
    fcontext::fcontext_t context = nullptr;
    Kept kept;
    const void* stack = nullptr;
    std::size_t stack_size = 0;
    void* fake_stack = nullptr;
};

std::uint64_t Random::next() noexcept {
    // splitmix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
}

Nanos Process::when(Nanos shown) const noexcept {
    if (shown >= never) return never;
    if (shown <= local) return then;
    const double rate = 1 + static_cast<double>(ppm) * 1e-6;
    Nanos at = then + static_cast<Nanos>(static_cast<double>(shown - local) / rate);
    // That is nearly it: what its clock shows is cut to whole nanoseconds.
    while (clock(at) < shown)
        ++at;
    while (clock(at - 1) >= shown)
        --at;
    return at;
}

void Process::jump(Nanos now, Nanos by) noexcept {
    local = clock(now) + by;
    then = now;
}

Kernel::Kernel(std::uint64_t seed)
    : random_(seed * 2 + 1), entropy_(~seed), main_(std::make_unique<Main>()) {
    running_kernel = this;
}

Kernel::~Kernel() {
    for (const auto& t : all_)
        if (t->stack != nullptr) Stacks::of_thread().give_back(t->stack);
    running_kernel = nullptr;
}

Kernel* Kernel::running() noexcept {
    return running_kernel;
}

Process* Kernel::process() const noexcept {
    return looked_at_ != nullptr ? looked_at_ : current_ != nullptr ? current_->process : nullptr;
}

const std::string& Kernel::current_name() const {
    return current_->name;
}

void Kernel::at(Nanos moment, std::function<void()> what) {
    if (moment >= never) return;
    events_.push({std::max(moment, now_), ++numbers_, std::move(what)});
}

void Kernel::trace(std::string_view who, std::string_view what) {
    if (!tracing) return;
    std::string moment = std::to_string(now_ / us);
    moment.insert(0, moment.size() < 12 ? 12 - moment.size() : 0, ' ');
    moment.insert(moment.size() - 6, ".");
    trace_text.append(moment).append("  ").append(who);
    trace_text.append(who.size() < 17 ? 17 - who.size() : 1, ' ').append(what).append("\n");
}

Nanos Kernel::delay() {
    if (random_.chance(20)) return random_.between(0, longest_latency);
    return random_.between(us, latency);
}

Thread* Kernel::start(Process& process, std::string name, std::function<void()> main) {
    all_.push_back(std::make_unique<Thread>());
    Thread* t = all_.back().get();
    t->name = process.name + "." + std::move(name);
    t->process = &process;
    t->main = std::move(main);
    t->stack = Stacks::of_thread().take();
    t->context = fcontext::make_fcontext(static_cast<char*>(t->stack) + stack_size, stack_size,
                                         [](fcontext::transfer_t from) {
                                             running_kernel->main_->context = from.fctx;
                                             running_kernel->entry();
                                         });
    ++live_;
    after(delay(), [this, t] { resume(t); });
    return t;
}

void Kernel::entry() {
    Thread* const t = current_;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &main_->stack, &main_->stack_size);
#endif
    t->kept.restore();
    t->main();
    t->main = nullptr;
    t->state = Thread::State::ended;
    --live_;
    if (t->joins != nullptr) wake(t->joins);
    leave();
}

void Kernel::enter(Thread* t) {
    main_->kept.save();
    current_ = t;
    t->state = Thread::State::runs;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&main_->fake_stack, t->stack, stack_size);
#endif
    t->context = fcontext::jump_fcontext(t->context, nullptr).fctx;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(main_->fake_stack, nullptr, nullptr);
#endif
    current_ = nullptr;
    main_->kept.restore();
    if (t->state == Thread::State::ended) {
        Stacks::of_thread().give_back(std::exchange(t->stack, nullptr));
    }
}

void Kernel::leave() {
    Thread* const t = current_;
    t->kept.save();
#if defined(__SANITIZE_ADDRESS__)
    const bool over = t->state == Thread::State::ended;
    __sanitizer_start_switch_fiber(over ? nullptr : &t->fake_stack, main_->stack,
                                   main_->stack_size);
#endif
    main_->context = fcontext::jump_fcontext(main_->context, nullptr).fctx;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(t->fake_stack, &main_->stack, &main_->stack_size);
#endif
    t->kept.restore();
}

void Kernel::resume(Thread* t) {
    if (t->state != Thread::State::ready) return;
    if (t->process->dead) {
        t->held = true;
        return;
    }
    if (const Nanos until = std::max(t->process->frozen_until, t->starved_until); now_ < until)
        return at(until + delay(), [this, t] { resume(t); });
    enter(t);
}

void Kernel::starve(Process& p, std::size_t number, Nanos until) {
    std::vector<Thread*> made;
    for (const auto& t : all_)
        if (t->process == &p && t->state != Thread::State::ended && t->name.ends_with(".thread"))
            made.push_back(t.get());
    if (!made.empty()) made[number % made.size()]->starved_until = until;
}

bool Kernel::block(Nanos until) {
    Thread* const t = current_;
    t->state = Thread::State::waits;
    t->timed_out = false;
    const auto number = ++t->waits;
    if (until < never)
        at(until, [this, t, number] {
            if (t->state != Thread::State::waits || t->waits != number) return;
            t->timed_out = true;
            wake(t);
        });
    leave();
    return !t->timed_out;
}

void Kernel::wake(Thread* t) {
    if (t == nullptr || t->state != Thread::State::waits) return;
    t->state = Thread::State::ready;
    after(delay(), [this, t] { resume(t); });
}

void Kernel::revive(Process& p) {
    p.dead = false;
    for (const auto& t : all_)
        if (t->process == &p && std::exchange(t->held, false))
            after(delay(), [this, one = t.get()] { resume(one); });
}

void Kernel::rest(Nanos pause) {
    const Nanos until = now_ + pause;
    while (now_ < until)
        block(until);
}

void Kernel::preempt() {
    if (current_ == nullptr || preemptions == 0 || !random_.chance(preemptions)) return;
    Thread* const t = current_;
    t->state = Thread::State::ready;
    after(delay(), [this, t] { resume(t); });
    leave();
}

bool Kernel::step() {
    if (events_.empty()) return false;
    // The queue gives out only const ones; this one leaves it at once.
    Event next = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = next.moment;
    ++steps_;
    next.what();
    return true;
}

std::string Kernel::threads_left() const {
    std::string out;
    for (const auto& t : all_)
        if (t->state != Thread::State::ended) out += (out.empty() ? "" : ", ") + t->name;
    return out;
}

int Kernel::join(Thread* t) {
    while (t->state != Thread::State::ended) {
        t->joins = current_;
        block(never);
    }
    return 0;
}

void Kernel::detach(Thread* t) {
    t->detached = true;
}

int Kernel::wait_for(pthread_cond_t* c, pthread_mutex_t* m, Nanos until) {
    Waiter w{c, current_, false};
    waiters_.push_back(&w);
    ::pthread_mutex_unlock(m);
    while (!w.notified && now_ < until)
        block(until);
    std::erase(waiters_, &w);
    ::pthread_mutex_lock(m);
    return w.notified ? 0 : ETIMEDOUT;
}

void Kernel::wait_for(pthread_cond_t* c, pthread_mutex_t* m) {
    wait_for(c, m, never);
}

void Kernel::notify(pthread_cond_t* c, bool all) {
    for (Waiter* w : waiters_) {
        if (w->on != c || w->notified) continue;
        w->notified = true;
        wake(w->thread);
        if (!all) return;
    }
}

}  // namespace holdfast::sim
