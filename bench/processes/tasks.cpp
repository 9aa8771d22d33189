#include "processes/tasks.hpp"

#include <fmt/format.h>

#include <thread>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr milliseconds half_a_task{5}, before_the_next_look{20};

class Worker {
public:
    Worker(const WorkerOptions& options, const std::optional<Client>& client, Diary& diary,
           StoreClient& store)
        : options_(&options), client_(&client), diary_(&diary), store_(&store) {}

    bool done(int task) { return store_->ask(fmt::format("read done/{}", task)) != "0"; }

    void do_one(int task) {
        if (!*client_) return work(task, 0);
        const auto name = fmt::format("{}/{}", options_->name, task);
        LockOptions how;
        how.ttl = milliseconds(options_->ttl_ms);
        const auto lock = (*client_)->make_lock(name, how);
        if (!lock) throw SelfCheck(lock.error().message());
        auto entry = diary_->asked(diary_->name(name, &(*lock)->capabilities()));
        auto lease = (*lock)->try_acquire();
        if (!lease) return diary_->failed(entry, lease.error());  // somebody else is at it
        diary_->granted(entry, *lease);
        if (!done(task)) work(task, entry.ticket.id);
        diary_->releasing(entry, *lease);
        diary_->released(entry, lease->release());
    }

private:
    void work(int task, std::uint64_t id) {
        std::this_thread::sleep_for(half_a_task);
        store_->ask(fmt::format("add effect/{} {}", task, id));
        std::this_thread::sleep_for(half_a_task);
        store_->ask(fmt::format("put done/{} 1 {}", task, id));
    }

    const WorkerOptions* options_;
    const std::optional<Client>* client_;
    Diary* diary_;
    StoreClient* store_;
};

}  // namespace

void do_tasks(const WorkerOptions& options, const std::optional<Client>& client, Diary& diary,
              StoreClient& store) {
    Worker worker(options, client, diary, store);
    store.ask("add up");
    while (store.ask("read may/" + options.who) == "0")
        std::this_thread::sleep_for(before_the_next_look);
    for (bool all_done = false; !all_done;) {
        all_done = true;
        for (int task = 0; task < options.cycles; ++task) {
            if (worker.done(task)) continue;
            all_done = false;
            worker.do_one(task);
        }
        if (!all_done) std::this_thread::sleep_for(before_the_next_look);
    }
}

}  // namespace holdfast::bench
