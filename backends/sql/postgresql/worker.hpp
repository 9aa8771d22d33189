// A thread of the client that talks to the server for the engine, on a connection of its own. There
// are two: one for grants and operators' calls, one for what keeps and frees leases, so that no
// slow call delays a renewal. Where the server has no connection for that one, the other does both.
#pragma once
#include "../common/worker.hpp"
#include "steps.hpp"

namespace holdfast::postgresql {

using Job = sql::Job<Step, Connection>;

class Worker final : public sql::Worker<Step, Connection> {
public:
    /// `other`: does what this one has no connection for.
    Worker(const std::shared_ptr<Shared>& shared, const asio::any_io_executor& engine,
           std::shared_ptr<sql::Worker<Step, Connection>> other = {})
        : sql::Worker<Step, Connection>(engine, "holdfast-pg", shared, Connection::Resolve::yes),
          other_(std::move(other)) {}

private:
    void answered(Jobs&) override;
    void sweep() override {
        postgresql::sweep(connection_, boot_clock::now() + std::chrono::seconds(1), cursor_);
    }

    const std::shared_ptr<sql::Worker<Step, Connection>> other_;
    std::string cursor_;  // of the sweep
};

}  // namespace holdfast::postgresql
