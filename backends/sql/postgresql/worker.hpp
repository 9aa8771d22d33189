// A thread of the client that talks to the server for the engine, on a connection of its own. There
// are two: one for grants and operators' calls, one for what keeps and frees leases, so that no
// slow call delays a renewal.
#pragma once
#include "../common/worker.hpp"
#include "steps.hpp"

namespace holdfast::postgresql {

using Job = sql::Job<Step, Connection>;

class Worker final : public sql::Worker<Step, Connection> {
public:
    Worker(const std::shared_ptr<Shared>& shared, const asio::any_io_executor& engine)
        : sql::Worker<Step, Connection>(engine, "holdfast-pg"),
          connection_(shared, Connection::Resolve::yes) {}

private:
    void process(Jobs) override;
    void end() noexcept override { connection_.close(); }

    // Used by the thread itself.
    Connection connection_;
    unsigned until_sweep_ = 64;
    std::string sweep_cursor_;
};

}  // namespace holdfast::postgresql
