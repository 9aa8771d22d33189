// The schedule's end beside threads that still set their moments.
#include <boost/asio/io_context.hpp>
#include <thread>

#include "../support/catch.hpp"
#include "schedule.hpp"

namespace {

struct Moment final : holdfast::Timed {
    void fire(holdfast::boot_clock::time_point) override {}
};

}  // namespace

// For ThreadSanitizer: arming used the descriptor while stop() closed it, and so might have set a
// timer of another client's that got the same number.
TEST_CASE("a moment may be set while the schedule stops", "[core]") {
    for (int round = 0; round < 200; ++round) {
        boost::asio::io_context io{1};
        holdfast::Schedule schedule(io);
        const auto moment = std::make_shared<Moment>();
        std::atomic<bool> running{false};
        std::thread sets([&] {
            auto due = holdfast::boot_clock::now() + std::chrono::hours(1);
            for (int n = 0; n < 50; ++n) {
                due -= std::chrono::seconds(1);  // earlier each time, so that each arms
                schedule.set(*moment, due);
                running = true;
            }
        });
        while (!running) {
        }
        schedule.stop();
        sets.join();
        schedule.cancel(*moment);
        io.poll();
    }
    SUCCEED();
}
