// The std Lockable family over a distributed lock: a counter in a file, raised by several threads
// and, when started several times, by several processes.  counter URL FILE TIMES
#include <cstdlib>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: counter URL FILE TIMES\n";
        return 64;
    }
    const std::string file = argv[2];
    const int times = std::atoi(argv[3]);
    auto client = holdfast::Client::open(argv[1]).value();
    holdfast::mutex mutex{client.make_lock("counter")};

    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < times; ++i) {
                const std::scoped_lock hold(mutex);
                long value = 0;
                std::ifstream(file) >> value;
                std::ofstream(file) << value + 1;
            }
        });
    }
    threads.clear();
    std::cout << std::ifstream(file).rdbuf() << '\n';
    return EXIT_SUCCESS;
}
