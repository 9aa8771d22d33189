// The connection on which the server notifies of releases. A thread of its own makes it when a
// caller first waits, as connecting may take long and no grant should wait behind it. Then the
// engine watches its socket.
#pragma once
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "waiters.hpp"
#include "worker.hpp"

namespace holdfast::postgresql {

class Listener : public std::enable_shared_from_this<Listener> {
public:
    Listener(std::shared_ptr<Shared> shared, spi::Context context,
             std::shared_ptr<sql::Worker<Step, Connection>> worker,
             std::shared_ptr<Waiters> waiters)
        : shared_(std::move(shared)),
          context_(context),
          worker_(std::move(worker)),
          connecting_on_(std::make_shared<Worker>(shared_, context.engine)),
          waiters_(std::move(waiters)),
          retry_(context.engine) {}

    /// Another server serves now: what waits is notified there.
    void again();
    /// A caller waits: connects, unless it is connected, is trying to, or must not.
    void want();
    void close() noexcept;

private:
    spi::awaitable<void> connect();
    void watch();
    void broke();
    /// We were notified, but no caller waits any more: notifies the next in line.
    void pass_on(std::vector<std::string> names);

    const std::shared_ptr<Shared> shared_;
    const spi::Context context_;
    const std::shared_ptr<sql::Worker<Step, Connection>> worker_;
    const std::shared_ptr<Worker> connecting_on_;
    const std::shared_ptr<Waiters> waiters_;
    std::unique_ptr<Connection> connection_;
    std::unique_ptr<asio::posix::stream_descriptor> socket_;
    asio::steady_timer retry_;
    bool connecting_ = false, closed_ = false, pausing_ = false;
};

}  // namespace holdfast::postgresql
