// A thread of the client that talks to the server for the engine, on a connection of its own: takes
// what has queued up, so that concurrent calls share statements. There are two: one for grants and
// questions, one for what keeps and frees leases, so that no slow question delays a renewal.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "steps.hpp"

namespace holdfast::postgresql {

/// What the engine hands over: steps, or a question. The engine reads the answers after `done`.
struct Job {
    explicit Job(const asio::any_io_executor& engine) : timer(engine) {}
    std::vector<Step> steps;
    std::function<void(Connection&)> ask;
    boot_clock::time_point deadline = boot_clock::time_point::min();
    asio::steady_timer timer;
    bool done = false;  ///< engine thread only
};

class Worker : public std::enable_shared_from_this<Worker> {
public:
    Worker(std::shared_ptr<Shared> shared, asio::any_io_executor engine)
        : shared_(std::move(shared)), engine_(std::move(engine)) {}

    /// Engine thread. True when the answers are in the job; false when the deadline passed first.
    /// The thread starts with the first job.
    spi::awaitable<bool> run(std::shared_ptr<Job> job);
    /// Ends the thread; waits for it a moment, and leaves it alone when it hangs in DNS. Jobs under
    /// way end with an error. Engine thread, after Watchdog::close.
    void close() noexcept;

private:
    using Jobs = std::vector<std::shared_ptr<Job>>;
    void start();
    void main();
    void process(Connection&, Jobs&);
    void deliver(Jobs);

    const std::shared_ptr<Shared> shared_;
    const asio::any_io_executor engine_;

    std::mutex mutex_;
    std::condition_variable news_, gone_;
    Jobs queue_;
    bool closing_ = false, ended_ = false;
    std::thread thread_;

    std::mutex delivery_;
    bool deaf_ = false;  // the engine went away without us

    // The thread's own.
    unsigned until_sweep_ = 64;
    std::string sweep_cursor_;
};

}  // namespace holdfast::postgresql
