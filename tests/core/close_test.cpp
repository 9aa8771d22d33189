// Closing tells everybody who waits, however little time it has.
#include <holdfast/holdfast.hpp>

#include "../support/catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

TEST_CASE("closing tells everybody who waits, however short its grace", "[core]") {
    constexpr int many = 50'000;
    std::atomic<int> told{0};
    {
        const auto client = hf::Client::open("memory:", {.close_grace = 0ms}).value();
        const auto lock = client.lock("one").value();
        auto holder = lock->acquire().value();
        for (int i = 0; i < many; ++i)
            lock->async_acquire({.wait = 600s}, [&](hf::error_code, hf::Lease) {
                ++told;  // closed, or granted meanwhile
            });
    }
    CHECK(holdfast::lab::reached([&] { return told == many; }, 30s));
    CHECK(told == many);
}
