#include "processes/worker.hpp"

#include <fmt/format.h>

#include <fstream>
#include <holdfast/client.hpp>
#include <holdfast/election.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <mutex>
#include <optional>
#include <thread>

#include "bench.hpp"
#include "checker/diary.hpp"
#include "measure/patience.hpp"
#include "processes/believer.hpp"
#include "processes/store.hpp"
#include "processes/tasks.hpp"
#include "variants/documents.hpp"
#include "variants/zookeeper_herd.hpp"

namespace holdfast::bench {

namespace {

/// The lock of one worker process, of whatever kind was asked for.
class Guard {
public:
    explicit Guard(const WorkerOptions& options)
        : kind_(options.guard), diary_(options.history, options.who) {
        if (kind_ != "holdfast") {
            name_ = diary_.name(options.name, nullptr);
            return;
        }
        Diagnostics words;
        ClientOptions how;
        how.diagnostics = &words;
        how.registry = registry_for(options.url);
        auto client = Client::open(options.url, how);
        if (!client) throw SelfCheck(words.text());
        client_ = *client;
        LockOptions fixed;
        if (options.job != "count" && options.job != "buy")
            fixed.ttl = milliseconds(options.ttl_ms);
        auto lock = client_->make_lock(options.name, fixed);
        if (!lock) throw SelfCheck(lock.error().message());
        lock_ = std::move(*lock);
        name_ = diary_.name(options.name, &lock_->capabilities());
    }

    /// Acquires and records it; `entry` is for what the caller records further.
    Lease acquire(Diary::Entry* entry = nullptr) {
        return acquire_by([this] { return lock_->acquire(); }, entry);
    }
    /// Waits until this process leads, with its name as the value; recorded as acquire() is.
    Lease lead(const WorkerOptions& options, Diary::Entry* entry) {
        LockOptions how;
        how.ttl = milliseconds(options.ttl_ms);
        auto election = client_->make_election(options.name, how);
        if (!election) throw SelfCheck(election.error().message());
        return acquire_by([&] { return election->campaign(options.who); }, entry);
    }
    template <class Ask>
    Lease acquire_by(Ask ask, Diary::Entry* entry) {
        Diary::Entry mine;
        Lease lease;
        check(until_answered(stuck_after,
                             [&](milliseconds) {
                                 mine = diary_.asked(name_);
                                 auto granted = ask();
                                 if (!granted) {
                                     diary_.failed(mine, granted.error());
                                     return granted.error();
                                 }
                                 lease = std::move(*granted);
                                 return error_code();
                             }),
              "acquire");
        diary_.granted(mine, lease);
        if (entry != nullptr) *entry = mine;
        return lease;
    }

    /// `work` gets the number of its acquisition in the history.
    template <class Work>
    void hold(Work work) {
        Diary::Entry entry;
        if (kind_ == "holdfast") {
            Lease lease = acquire(&entry);
            work(entry.ticket.id);
            diary_.releasing(entry, lease);
            const ReleaseResult result = lease.release();
            diary_.released(entry, result);
            if (result != ReleaseResult::released)
                throw SelfCheck(fmt::format("release: {}", to_string(result)));
            return;
        }
        entry = diary_.asked(name_);
        std::unique_lock inside(mutex_, std::defer_lock);
        if (kind_ == "mutex") inside.lock();
        diary_.granted(entry);
        work(entry.ticket.id);
        diary_.releasing(entry);
        if (inside) inside.unlock();
        diary_.released(entry, ReleaseResult::released);
    }

    Diary& diary() { return diary_; }
    const std::optional<Client>& client() const { return client_; }

private:
    std::string kind_;
    Diary diary_;
    std::uint16_t name_ = 0;
    std::optional<Client> client_;
    std::unique_ptr<Lock> lock_;
    std::mutex mutex_;
};

/// Read, then write: each by itself is atomic, both together are not.
void count(const WorkerOptions& options, Guard& guard, StoreClient& store) {
    for (int i = 0; i < options.cycles; ++i)
        guard.hold([&](std::uint64_t id) {
            const long long number = std::stoll(store.ask("get"));
            store.ask(fmt::format("set {} {}", number + 1, id));
        });
}

void buy(const WorkerOptions& options, Guard& guard, StoreClient& store) {
    guard.hold([&](std::uint64_t id) {
        const long long stock = std::stoll(store.ask("get"));
        if (stock <= 0) return;
        store.ask(fmt::format("set {} {}", stock - 1, id));
        store.ask("sold " + options.who);
    });
}

/// A holder that trusts its lease: looks whether it is lost, works for 10 ms, writes; and so on.
/// When it is stopped in between, the write comes late.
void write(const WorkerOptions& options, Guard& guard, StoreClient& store) {
    Diary::Entry entry;
    Lease lease = guard.acquire(&entry);
    const auto token = lease.fencing_token().value;
    store.ask(fmt::format("holds {} {} {}", options.who, token, entry.ticket.id));
    const std::stop_token lost = lease.lost();
    while (!lost.stop_requested()) {
        std::this_thread::sleep_for(milliseconds(10));
        store.ask(fmt::format("write {} {} {} {}", options.who, token, lease.valid() ? 1 : 0,
                              entry.ticket.id));
        guard.diary().believes(entry, lease);
    }
    guard.diary().lost(entry, lease);
    store.ask("lost " + options.who);
    // Stays until it is killed: what happens next is the bench's business.
    store.ask("stay");
}

/// Says now and then what it believes, until it is killed or the store is gone.
[[noreturn]] void stay(Guard& guard, StoreClient& store, Diary::Entry& entry, const Lease& lease) {
    for (;; std::this_thread::sleep_for(milliseconds(50))) {
        store.ask("get");
        guard.diary().believes(entry, lease);
    }
}

/// A writer of two values that belong together, and of a flag that says so. It gets no further than
/// the first one: until it is killed, or by an exception.
void update(const WorkerOptions& options, Guard& guard, StoreClient& store) {
    Diary::Entry entry;
    const Lease lease = guard.acquire(&entry);
    const auto id = entry.ticket.id;
    store.ask(fmt::format("put ready 0 {}", id));
    store.ask(fmt::format("put left 1 {}", id));
    store.ask(fmt::format("holds {} {} {}", options.who, lease.fencing_token().value, id));
    if (options.job == "update-throws") {
        guard.diary().releasing(entry, lease, Outcome::abandoned);
        throw SelfCheck("what this worker is there to throw");
    }
    stay(guard, store, entry, lease);
}

/// A holder in the middle of two steps, the first of which is done; it gets no further.
void hold(const WorkerOptions& options, Guard& guard, StoreClient& store) {
    Diary::Entry entry;
    const Lease lease = guard.acquire(&entry);
    store.ask(fmt::format("set 1 {}", entry.ticket.id));
    store.ask(
        fmt::format("holds {} {} {}", options.who, lease.fencing_token().value, entry.ticket.id));
    stay(guard, store, entry, lease);
}

void work(const WorkerOptions& options, Guard& guard) {
    if (options.job == "believe" || options.job == "lead") {
        Diary::Entry entry;
        if (options.job == "lead") std::ofstream(options.store, std::ios::app);  // is about to ask
        Lease lease = options.job == "lead" ? guard.lead(options, &entry) : guard.acquire(&entry);
        return believe(options, std::move(lease), guard.diary(), entry);
    }
    StoreClient store(options.store);
    store.ask("wait");
    if (options.job == "count") return count(options, guard, store);
    if (options.job == "buy") return buy(options, guard, store);
    if (options.job == "write") return write(options, guard, store);
    if (options.job == "tasks") return do_tasks(options, guard.client(), guard.diary(), store);
    if (options.job == "hold") return hold(options, guard, store);
    if (options.job.starts_with("update")) return update(options, guard, store);
    if (options.job == "watch")
        watch_until_killed(options.url, options.name,
                           [&] { store.ask(fmt::format("holds {} 0", options.who)); });
    throw SelfCheck("no such job: " + options.job);
}

}  // namespace

int worker_main(const WorkerOptions& options) try {
    Guard guard(options);
    std::atomic<bool> failed{false};
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.threads; ++i)
        threads.emplace_back([&] {
            try {
                work(options, guard);
            } catch (const std::exception& error) {
                fmt::print(stderr, "worker {}: {}\n", options.who, error.what());
                failed = true;
            }
        });
    threads.clear();
    if (failed) guard.diary().leave_open();
    return failed ? 1 : 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "worker {}: {}\n", options.who, error.what());
    return 1;
}

lab::Process start_worker(const WorkerOptions& o, const std::filesystem::path& log) {
    lab::ProcessOptions how;
    how.argv = {std::filesystem::read_symlink("/proc/self/exe").string(),
                "worker",
                "--job=" + o.job,
                "--guard=" + o.guard,
                "--store=" + o.store,
                "--url=" + o.url,
                "--name=" + o.name,
                "--who=" + o.who,
                "--history=" + o.history,
                "--cycles=" + std::to_string(o.cycles),
                "--threads=" + std::to_string(o.threads),
                "--ttl=" + std::to_string(o.ttl_ms)};
    // An option without a value would take the next one for it.
    std::erase_if(how.argv, [](const std::string& word) { return word.ends_with('='); });
    how.log = log;
    return lab::Process(std::move(how));
}

void join_workers(std::vector<lab::Process>& workers, double seconds) {
    const auto start = Clock::now();
    for (auto& worker : workers) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(std::max(0.0, seconds - seconds_since(start))));
        const auto ended = worker.wait(left);
        if (!ended) throw SelfCheck("a worker process did not end in time: " + worker.log_tail(3));
        if (ended->by_signal || ended->code != 0)
            throw SelfCheck("a worker process failed: " + worker.log_tail(3));
    }
    workers.clear();
}

}  // namespace holdfast::bench
