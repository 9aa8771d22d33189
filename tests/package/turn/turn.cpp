// turn URL NAME: acquires the lock if it is free, and prints the token; 75 if another client holds
// it.
#include <holdfast/holdfast.hpp>
#include <iostream>

int main(int argc, char** argv) {
    if (argc != 3) return 64;
    const auto client = holdfast::Client::open(argv[1]).value();
    const auto lock = client.make_lock(argv[2]).value();
    auto lease = lock->try_acquire();
    if (!lease) return lease.error() == holdfast::errc::contended ? 75 : 1;
    std::cout << lease->fencing_token() << '\n';
    return lease->release() == holdfast::ReleaseResult::released ? 0 : 2;
}
