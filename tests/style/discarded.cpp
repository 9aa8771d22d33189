// Each marked statement drops a result and so protects nothing: the compiler has to say so
// (discarded.py reads the marks).
#include <holdfast/holdfast.hpp>

void protects_nothing(const holdfast::Client& client, holdfast::Lock& lock, holdfast::Lease& lease,
                      holdfast::mutex& mutex) {
    holdfast::Client::open("memory:");          // discarded
    client.make_lock("x");                      // discarded
    client.break_lock("x");                     // discarded
    client.inspect("x");                        // discarded
    lock.acquire();                             // discarded
    lock.try_acquire();                         // discarded
    lease.renew();                              // discarded
    lease.valid();                              // discarded
    mutex.try_lock();                           // discarded
    mutex.try_lock_for(std::chrono::hours(1));  // discarded
    lease.release();
    mutex.lock();
    mutex.unlock();
}
