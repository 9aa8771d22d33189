// Many workers on many machines, and at most three of them at the same time in what is scarce: a
// licence, a slow disk, a service that allows so many calls.  worker_pool URL TASKS
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t most_at_once = 3;  // every program that uses the name says the same

// One line at a time, whole, also when several processes write to one file.
void say(const std::string& line) {
    const auto text = std::to_string(getpid()) + " " + line + "\n";
    if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::abort();
}

// Stands for the work. It stops early when the permit is lost, since somebody else may have it
// then.
bool render(const std::stop_token& lost) {
    for (int part = 0; part < 5; ++part) {
        if (lost.stop_requested()) return false;
        std::this_thread::sleep_for(10ms);
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: worker_pool URL TASKS\n";
        return 64;
    }
    const int tasks = std::atoi(argv[2]);
    auto client = holdfast::Client::open(argv[1]).value();
    const holdfast::LockOptions options{.kind = holdfast::Kind::semaphore, .limit = most_at_once};
    auto renderers = client.make_lock("renderers", options).value();

    std::atomic<int> next = 0, failed = 0;
    std::vector<std::jthread> workers;
    for (int w = 0; w < 4; ++w) {
        workers.emplace_back([&] {
            for (int task = next++; task < tasks; task = next++) {
                auto permit = renderers->acquire({.wait = 1min});  // .permits = 2 for a heavy task
                if (!permit) {
                    ++failed;
                    std::cerr << permit.error().message() << '\n';
                    continue;
                }
                say("begins " + std::to_string(task));
                const bool done = render(permit->lost());
                say((done ? "ends " : "stops ") + std::to_string(task));
                permit->release();
                if (!done) ++failed;
            }
        });
    }
    workers.clear();  // joins them
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
