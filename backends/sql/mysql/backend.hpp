// The mysql backend: verbs hand their items to a worker's thread; lanes run them on the caller's.
#pragma once
#include "../common/lane.hpp"
#include "../common/server_backend.hpp"
#include "holdfast/spi/registry.hpp"
#include "questions.hpp"

namespace holdfast::mysql {

/// A thread of the client that talks to the server for the engine, on a connection of its own.
/// There are two: one for grants and operators' calls, one for what keeps and frees leases, so that
/// no slow call delays a renewal.
class Worker final : public sql::Worker<Step, Connection> {
public:
    Worker(const std::shared_ptr<Shared>& shared, const asio::any_io_executor& engine)
        : sql::Worker<Step, Connection>(engine, "holdfast-mysql", shared,
                                        Connection::Resolve::yes) {}

private:
    void sweep() override {
        mysql::sweep(connection_, boot_clock::now() + std::chrono::seconds(1), cursor_);
    }

    std::string cursor_;  // of the sweep
};

class Lane final : public sql::Lane<Step, Connection> {
public:
    explicit Lane(const std::shared_ptr<Shared>& shared)
        : sql::Lane<Step, Connection>(shared->options.prefix, shared, Connection::Resolve::no) {}

private:
    void answered(Step& s, spi::Attempt& a) override { sql::take(s, connection_.shared(), a); }
    void sweep(boot_clock::time_point deadline) override {
        mysql::sweep(connection_, deadline, cursor_);
    }

    std::string cursor_;
};

class Backend final : public sql::ServerBackend<Connection, Questions> {
public:
    Backend(const spi::Settings& settings, const spi::Context& context)
        : Backend(settings, context, std::make_shared<Shared>(settings, context.engine)) {}
    ~Backend() override { stop(); }

    std::unique_ptr<spi::Lane> open_lane() override { return std::make_unique<Lane>(shared_); }

private:
    Backend(const spi::Settings& settings, const spi::Context& context,
            const std::shared_ptr<Shared>& shared)
        : sql::ServerBackend<Connection, Questions>(promises(), settings, context, shared),
          shared_(shared) {
        asking_ = std::make_shared<Worker>(shared_, context.engine);
        keeping_ = std::make_shared<Worker>(shared_, context.engine);
    }

    const std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::mysql
