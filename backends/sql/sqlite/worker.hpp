// The one thread of a client that talks to the file for the engine: takes what has queued up as one
// transaction, and looks on behalf of all waiters.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "connection.hpp"
#include "steps.hpp"
#include "watch.hpp"

namespace holdfast::sqlite {

/// What the engine hands over: steps, or a question. The engine reads the answers after `done`.
struct Job {
    explicit Job(const asio::any_io_executor& engine) : timer(engine) {}
    std::vector<Step> steps;
    std::function<void(Connection&)> ask;
    boot_clock::time_point deadline;
    asio::steady_timer timer;
    bool done = false;  ///< engine thread only
};

class Worker : public std::enable_shared_from_this<Worker> {
public:
    Worker(std::shared_ptr<Place> place, spi::Context context)
        : place_(std::move(place)), context_(context), connection_(place_) {}

    /// Engine thread. True when the answers are in the job; false when the deadline passed first,
    /// as on a disk that hangs. The thread starts with the first job.
    spi::awaitable<bool> run(std::shared_ptr<Job> job);
    /// A row may have become free. Any thread.
    void kick() noexcept;
    /// Ends the thread; waits for it a moment, and leaves it alone when the disk hangs. Jobs under
    /// way end with an error. Engine thread.
    void close() noexcept;

private:
    using Jobs = std::vector<std::shared_ptr<Job>>;
    void start();
    void main();
    Jobs next();
    void process(Jobs&);
    void answer_waiters(std::vector<Step*>& steps);
    void look_around();
    void deliver(Jobs);
    void wake(std::vector<std::string> owners);

    const std::shared_ptr<Place> place_;
    const spi::Context context_;

    std::mutex mutex_;
    std::condition_variable news_, gone_;
    Jobs queue_;
    bool kicked_ = false, closing_ = false, ended_ = false;
    std::size_t waiting_ = 0;
    std::thread thread_;

    std::mutex delivery_;
    bool deaf_ = false;  // the engine went away without us

    // The thread's own.
    Connection connection_;
    Watch watch_;
    FileId joined_;
    boot_clock::time_point last_news_{};
    std::chrono::nanoseconds pause_{};
    unsigned until_sweep_ = 64;
};

/// Tells every worker of this process that has that file open: a row became free.
void kick_neighbours(const FileId&) noexcept;
void join_neighbours(const FileId&, const std::shared_ptr<Worker>&);

}  // namespace holdfast::sqlite
