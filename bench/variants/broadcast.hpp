// The herd, as many articles write it: SET NX, and a release that is told to all waiters, which all
// try again. Bare hiredis; here for comparison only, never installed.
#pragma once
#include <cstdint>
#include <deque>
#include <string>

#include "floors/redis_floor.hpp"
#include "measure/hand_offs.hpp"

namespace holdfast::bench {

struct BroadcastResult : HandOffs {
    std::uint64_t notifications = 0;  ///< received by the clients
};

/// `waiters` + 1 clients with a command and a subscriber connection each, driven by one thread.
class Broadcast {
public:
    /// Errors: SelfCheck.
    Broadcast(std::uint16_t port, std::size_t waiters);
    /// Everybody acquires, releases at once and tries again. Errors: SelfCheck.
    BroadcastResult run_for(double seconds);

private:
    enum class State : std::uint8_t { waiting, trying, releasing };
    struct One {
        RedisContext command, subscriber;
        State state = State::waiting;
        bool told = false;  ///< of a release while trying
        std::string owner;
    };
    void try_it(One&);
    void release(One&);
    void on_reply(One&, const redisReply&);
    void on_message(One&);
    template <class Take>
    void drain(redisContext*, Take);

    std::deque<One> all_;
    std::string sha_;
    Turns turns_;
    BroadcastResult now_;
    std::uint64_t owners_ = 0;
};

}  // namespace holdfast::bench
