// A job that moves from one lock server to another while it goes on running everywhere.
//   migration FILE TIMES URL...   raises the number in FILE so often, each time under the lock of
//   every URL
// Before: the old URL alone. Meanwhile: the old and the new one. Afterwards: the new one alone.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
#include <vector>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
    if (argc < 4) {
        std::cerr << "usage: migration FILE TIMES URL...\n";
        return 64;
    }
    const std::string file = argv[1];
    const int times = std::atoi(argv[2]);
    std::vector<holdfast::Client> clients;
    std::vector<std::unique_ptr<holdfast::Lock>> locks;
    std::vector<holdfast::Part> parts;
    for (int a = 3; a < argc; ++a) {
        clients.push_back(holdfast::Client::open(argv[a]).value());
        locks.push_back(clients.back().make_lock("orders").value());
        parts.emplace_back(*locks.back());
    }

    for (int i = 0; i < times; ++i) {
        // One order for all callers, whatever the order of the URLs; all of them, or none.
        std::size_t failed = 0;
        auto leases = holdfast::acquire_all(parts, {.wait = 1min, .failed = &failed});
        if (!leases) {
            std::cerr << clients[failed].url() << ": " << leases.error().message() << '\n';
            return 75;
        }
        long value = 0;
        std::ifstream(file) >> value;
        if (!leases->valid()) return 76;  // lost with the first of them
        std::ofstream(file) << value + 1;
        if (i == 0) {
            for (std::size_t p = 0; p < leases->size(); ++p)
                std::cout << clients[p].backend() << " token " << (*leases)[p].fencing_token().value
                          << '\n';
        }
        leases->release();
    }
    std::cout << "raised " << times << " times under " << locks.size() << " locks\n";
    return EXIT_SUCCESS;
}
