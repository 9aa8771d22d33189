// Closing tells everybody who waits, however little time it has.
#include <holdfast/holdfast.hpp>

#include "../support/catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

namespace {

// What cannot be run within a second is left behind, and a leak checker would say so.
constexpr int many =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    2'000;
#else
    50'000;
#endif

}  // namespace

TEST_CASE("closing tells everybody who waits, however short its grace", "[core]") {
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
