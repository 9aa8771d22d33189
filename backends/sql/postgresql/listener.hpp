// The connection on which the server notifies of releases. Made by a worker when a caller waits for
// the first time; its socket is then watched by the engine, so it needs no thread.
#pragma once
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "line.hpp"
#include "worker.hpp"

namespace holdfast::postgresql {

class Listener : public std::enable_shared_from_this<Listener> {
public:
    Listener(std::shared_ptr<Shared> shared, spi::Context context,
             std::shared_ptr<sql::Worker<Step, Connection>> worker, std::shared_ptr<Line> line)
        : shared_(std::move(shared)),
          context_(context),
          worker_(std::move(worker)),
          line_(std::move(line)),
          retry_(context.engine) {}

    /// Somebody waits: connects unless it is, or tries to, or must not.
    void want();
    void close() noexcept;

private:
    spi::awaitable<void> connect();
    void watch();
    void broke();
    /// We were notified, and no caller waits any more: the next in line is notified.
    void pass_on(std::vector<std::string> names);

    const std::shared_ptr<Shared> shared_;
    const spi::Context context_;
    const std::shared_ptr<sql::Worker<Step, Connection>> worker_;
    const std::shared_ptr<Line> line_;
    std::unique_ptr<Connection> connection_;
    std::unique_ptr<asio::posix::stream_descriptor> socket_;
    asio::steady_timer retry_;
    bool connecting_ = false, closed_ = false, pausing_ = false;
};

}  // namespace holdfast::postgresql
