// What a simulated process has open: timers, counters, sets of them to wait for, and sockets whose
// other end is a simulated server. Nothing here reaches the system.
#pragma once
#include <sys/epoll.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel.hpp"

namespace holdfast::sim {

class Epoll;

class Descriptor {
public:
    enum class Kind : std::uint8_t { epoll, counter, timer, socket };
    explicit Descriptor(Kind k) noexcept : kind(k) {}
    virtual ~Descriptor() = default;
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    /// EPOLLIN and so on, as far as it is so now.
    virtual std::uint32_t ready() const = 0;
    /// The last number is closed.
    virtual void closed() {}
    /// Tells those that wait.
    void changed();

    const Kind kind;
    bool blocks = false;
    Process* process = nullptr;

private:
    friend class Epoll;
    friend class Descriptors;
    std::vector<std::pair<Epoll*, int>> watched_by_;
    std::vector<Thread*> waiting_;  ///< in poll or in a call that blocks
};

class Epoll final : public Descriptor {
public:
    static constexpr Kind own = Kind::epoll;
    Epoll() noexcept : Descriptor(own) {}
    std::uint32_t ready() const override { return 0; }
    void closed() override;
    int control(int what, int fd, const std::shared_ptr<Descriptor>&, const epoll_event*);
    int wait(epoll_event* out, int most, int milliseconds);

private:
    friend class Descriptor;
    friend class Descriptors;
    struct Interest {
        std::shared_ptr<Descriptor> in;
        epoll_event wanted{};
        bool edge = false;
    };
    std::map<int, Interest> interests_;
    Thread* waits_ = nullptr;
};

class Counter final : public Descriptor {
public:
    static constexpr Kind own = Kind::counter;
    Counter() noexcept : Descriptor(own) {}
    std::uint32_t ready() const override {
        return EPOLLOUT | (value != 0 ? std::uint32_t{EPOLLIN} : 0U);
    }
    std::uint64_t value = 0;
};

class Timer final : public Descriptor {
public:
    static constexpr Kind own = Kind::timer;
    Timer() noexcept : Descriptor(own) {}
    std::uint32_t ready() const override { return expired ? std::uint32_t{EPOLLIN} : 0U; }
    void closed() override { ++number_; }
    /// At this time of the process's clock; zero: never.
    void set(Nanos due, const std::shared_ptr<Timer>& self);
    bool expired = false;
    Nanos due = 0;

private:
    std::uint64_t number_ = 0;
};

class Connection;

/// The client's end of a connection.
class Socket final : public Descriptor {
public:
    static constexpr Kind own = Kind::socket;
    Socket() noexcept : Descriptor(own) {}
    enum class State : std::uint8_t { fresh, connecting, connected, failed };
    std::uint32_t ready() const override;
    void closed() override;
    /// Both directions.
    void shut_down();

    State state = State::fresh;
    int error = 0;  ///< of connect, or of a reset
    std::string inbox;
    bool ended = false;  ///< the other end will send no more
    std::shared_ptr<Connection> connection;
    Nanos receive_limit = 0;
};

/// All that is open, by number. A number that was closed is given out again.
class Descriptors {
public:
    static constexpr int first = 1'000'000;

    int add(std::shared_ptr<Descriptor>);
    std::shared_ptr<Descriptor> find(int fd) const;
    int close(int fd);
    std::size_t open() const noexcept { return open_; }

    /// The current thread waits for any of these, or until then.
    static void wait_for(const std::vector<Descriptor*>&, Nanos until);

private:
    std::vector<std::shared_ptr<Descriptor>> all_;
    std::size_t open_ = 0;
};

}  // namespace holdfast::sim
