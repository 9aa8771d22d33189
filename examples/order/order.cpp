// One job under a lock: both kinds of failure, the fencing token at the store, and the signal that
// says when to stop.  order URL, for example  order sqlite:///tmp/order.db  or  order
// redis://127.0.0.1:6379
#include <chrono>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>

using namespace std::chrono_literals;

namespace {

// Stands for the database row that the lock protects.
holdfast::FencedResource row;
int amount = 0;

int work(const holdfast::Lease& lease) {
    const std::stop_token lost = lease.lost();
    for (int step = 0; step < 3; ++step) {
        if (lost.stop_requested()) {
            std::cerr << "lost: " << lease.lost_reason().message() << '\n';
            return EXIT_FAILURE;
        }
        if (!row.write(lease.fencing_token(), [] { ++amount; })) {
            std::cerr << "the store refused the write: somebody newer was there\n";
            return EXIT_FAILURE;
        }
    }
    std::cout << "amount " << amount << " under token " << lease.fencing_token().value << '\n';
    return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
    holdfast::Diagnostics words;
    auto client = holdfast::Client::open(argc > 1 ? argv[1] : "", {.diagnostics = &words});
    if (!client) {
        std::cerr << words.text() << '\n';
        return 78;
    }
    auto lock = client->make_lock("orders/42").value();
    auto lease = lock->acquire({.wait = 5s, .note = "example", .diagnostics = &words});
    if (!lease && lease.error() == holdfast::errc::timed_out) {
        std::cerr << "somebody else has it\n";
        return 75;
    }
    if (!lease) {
        std::cerr << lease.error().message() << '\n' << words.text() << '\n';
        return 69;
    }
    if (lease->previous_holder() == holdfast::PreviousHolder::crashed ||
        lease->previous_holder() == holdfast::PreviousHolder::abandoned)
        std::cout << "the holder before did not finish: check its work first\n";
    return work(*lease);
}
