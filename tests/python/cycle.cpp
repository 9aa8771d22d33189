// What an acquire and a release cost in C++: for each line on standard input so many of them,
// timed, in microseconds each. cycle.py compares Python with it.
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>

int main(int argc, char** argv) {
    if (argc != 3) return 64;
    const auto client = holdfast::Client::open(argv[1]).value();
    const auto lock = client.make_lock(argv[2]).value();
    for (int count = 0; std::cin >> count;) {
        const auto begin = std::chrono::steady_clock::now();
        for (int n = 0; n < count; ++n) {
            auto lease = lock->acquire().value();
            if (lease.release() != holdfast::ReleaseResult::released) return 1;
        }
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        std::cout << took.count() / count << std::endl;
    }
}
