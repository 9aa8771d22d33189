// A thread of the client that talks to the file for the engine, on a connection of its own. All
// queued jobs are one transaction, and it looks on behalf of all waiters. There are two: one for
// the locks, and one for operators' calls, which may take long.
#pragma once
#include "../common/worker.hpp"
#include "steps.hpp"
#include "watch.hpp"

namespace holdfast::sqlite {

class Worker final : public sql::Worker<Step, Connection> {
public:
    Worker(std::shared_ptr<DatabaseFile> file, const spi::Context& context)
        : sql::Worker<Step, Connection>(context.engine, "holdfast-sqlite", file),
          database_(std::move(file)),
          events_(context.events) {}

    /// A row may have become free. Any thread.
    void kick() noexcept;

private:
    void wait(std::unique_lock<std::mutex>&) override;
    void process(Jobs) override;
    void run(std::vector<Step*>&) override;
    void sweep() override { sqlite::sweep(connection_, boot_clock::now() + milliseconds(100)); }
    void run_all(std::vector<Step*>&);
    void refuse_attempts(const std::vector<Step*>&) const;
    void answer_waiters(std::vector<Step*>& steps);
    void look_around();

    const std::shared_ptr<DatabaseFile> database_;
    spi::BackendEvents& events_;

    // Guarded by the queue's mutex.
    bool kicked_ = false;
    std::size_t waiting_ = 0;

    // Used by the thread itself.
    Watch watch_;
    FileId joined_;
    boot_clock::time_point last_news_{};
    std::chrono::nanoseconds pause_{};
};

/// Notifies every worker of this process that has the file open: a row became free.
void kick_neighbours(const FileId&) noexcept;
void join_neighbours(const FileId&, const std::shared_ptr<Worker>&);

}  // namespace holdfast::sqlite
