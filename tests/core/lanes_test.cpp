// Lanes that nobody borrows are closed after their time; those in use are not.
#include "lanes.hpp"

#include <atomic>

#include "catch.hpp"

namespace hf = holdfast;
namespace spi = holdfast::spi;
using hf::boot_clock;

namespace {

std::atomic<int> alive{0};

struct Lane final : spi::Lane {
    Lane() { ++alive; }
    ~Lane() override { --alive; }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    void attempt(spi::Attempt&) noexcept override {}
    void release(spi::Held&) noexcept override {}
};

struct Backend final : spi::Backend {
    const hf::Capabilities& capabilities() const noexcept override { return capabilities_; }
    spi::awaitable<void> attempt(std::span<spi::Attempt* const>) override { co_return; }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const>) override { co_return; }
    spi::awaitable<void> renew(std::span<spi::Held* const>) override { co_return; }
    spi::awaitable<void> release(std::span<spi::Held* const>) override { co_return; }
    std::unique_ptr<spi::Lane> open_lane() override { return std::make_unique<Lane>(); }
    const hf::Capabilities capabilities_{hf::SafetyClass::d, {}};
};

}  // namespace

TEST_CASE("lanes: who is idle for a minute is closed, and the last one back is lent first") {
    Backend backend;
    std::vector<boot_clock::time_point> due;
    hf::Lanes lanes(backend, [&](boot_clock::time_point at) { due.push_back(at); });
    const auto began = boot_clock::now();
    {
        auto one = lanes.borrow(), two = lanes.borrow(), three = lanes.borrow();
        CHECK(alive == 3);
        CHECK(due.empty());
        one.give_back();
        two.give_back();
        REQUIRE(due.size() == 1);  // for all of them
        CHECK(due[0] >= began + hf::Lanes::patience);

        lanes.close_idle(due[0] - std::chrono::seconds(1));
        CHECK(alive == 3);
        REQUIRE(due.size() == 2);
        CHECK(due[1] == due[0]);

        // Far in the future: all that are idle, and not the one in use.
        lanes.close_idle(boot_clock::now() + 2 * hf::Lanes::patience);
        CHECK(alive == 1);
        CHECK(due.size() == 2);  // nothing is left to watch
    }
    CHECK(due.size() == 3);
    auto again = lanes.borrow();
    CHECK(alive == 1);
    again.give_back();
    lanes.stop();
    CHECK(alive == 0);
    lanes.close_idle(boot_clock::now() + 2 * hf::Lanes::patience);
    CHECK(due.size() == 3);
}
