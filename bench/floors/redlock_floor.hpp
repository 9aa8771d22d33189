// The raw floor for Redlock: the documents' two commands, written to every node before any answer
// is read. Bare hiredis.
#pragma once
#include <string>
#include <vector>

#include "floors/redis_floor.hpp"

namespace holdfast::bench {

class RedlockFloor {
public:
    /// Connects to all of them. Errors: SelfCheck.
    explicit RedlockFloor(const std::vector<std::uint16_t>& ports);
    /// SET NX PX everywhere, then compare-and-delete everywhere. Errors: SelfCheck unless every
    /// node agrees to both.
    void cycle();

private:
    template <class Append>
    void round(Append append, const char* what);

    std::vector<RedisContext> nodes_;
    std::string sha_;
    std::uint64_t counter_ = 0;
};

}  // namespace holdfast::bench
