#include "listener.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace holdfast::postgresql {
namespace {

constexpr milliseconds listener_patience{2000};
constexpr milliseconds pause_after_failure{500};
/// A pooler does not go away by itself.
constexpr std::chrono::seconds pause_after_refusal{60};

}  // namespace

void Listener::again() {
    if (closed_) return;
    if (connection_) return broke();
    waiters_->hearing(false);
}

void Listener::want() {
    if (connection_ || connecting_ || pausing_ || closed_) return;
    connecting_ = true;
    auto task = connect();
    asio::co_spawn(context_.engine, std::move(task), asio::detached);
}

spi::awaitable<void> Listener::connect() {
    const auto self = shared_from_this();
    struct Made {
        std::unique_ptr<Connection> connection;
        spi::Failure failed;
    };
    auto made = std::make_shared<Made>();
    auto job = std::make_shared<Job>(context_.engine);
    job->deadline = boot_clock::now() + listener_patience;
    const auto deadline = job->deadline;
    job->ask = [made, shared = shared_, deadline](Connection& through) {
        try {
            const auto& where = shared->direct ? shared->direct : shared;
            made->connection = std::make_unique<Connection>(where, Connection::Resolve::yes);
            made->failed = made->connection->listen(deadline);
            // A place in line at one server is of no use to one that listens at another.
            if (!made->failed && shared->direct)
                made->failed = made->connection->hears(through, deadline);
        } catch (const std::exception&) {
            made->failed = make_error_code(errc::unavailable);
        }
        through.close();
    };
    auto run = connecting_on_->run(job);
    const bool answered = co_await std::move(run);
    connecting_ = false;
    if (closed_) co_return;
    const bool listens = answered && !made->failed && made->connection;
    if (listens && made->connection->current()) {
        connection_ = std::move(made->connection);
        watch();
        if (connection_) waiters_->hearing(true);
        co_return;
    }
    const bool refused = answered && made->failed.why == errc::not_supported;
    if (refused && shared_->direct)
        shared_->reports.warn("waiters are not notified over listen: " + made->failed.detail);
    pausing_ = true;
    if (refused)
        retry_.expires_after(pause_after_refusal);
    else
        retry_.expires_after(pause_after_failure);
    retry_.async_wait([weak = weak_from_this()](const error_code& ec) {
        const auto alive = weak.lock();
        if (ec || !alive) return;
        alive->pausing_ = false;
        if (!alive->waiters_->empty()) alive->want();
    });
}

void Listener::watch() {
    if (!socket_) {
        const int fd = connection_->duplicate();
        if (fd < 0) return broke();
        socket_ = std::make_unique<asio::posix::stream_descriptor>(context_.engine, fd);
    }
    socket_->async_wait(
        asio::posix::descriptor_base::wait_read, [weak = weak_from_this()](const error_code& ec) {
            const auto alive = weak.lock();
            if (!alive || alive->closed_ || ec == asio::error::operation_aborted) return;
            std::vector<std::string> names;
            const bool well = !ec && alive->connection_ && alive->connection_->heard(names);
            std::vector<std::string> in_vain;
            for (std::string& name : names)
                if (!alive->waiters_->freed(name)) in_vain.push_back(std::move(name));
            if (!in_vain.empty()) alive->pass_on(std::move(in_vain));
            if (well)
                alive->watch();
            else
                alive->broke();
        });
}

void Listener::broke() {
    socket_.reset();
    connection_.reset();
    waiters_->hearing(false);
    if (!waiters_->empty()) want();
}

void Listener::pass_on(std::vector<std::string> names) {
    auto job = std::make_shared<Job>(context_.engine);
    job->deadline = boot_clock::now() + listener_patience;
    job->ask = [names = std::move(names), deadline = job->deadline](Connection& c) {
        try {
            tell(c, names, deadline, true);
        } catch (const std::exception&) {
            c.close();
        }
    };
    auto run = worker_->run(std::move(job));
    asio::co_spawn(context_.engine, std::move(run), asio::detached);
}

void Listener::close() noexcept {
    closed_ = true;
    retry_.cancel();
    socket_.reset();
    connection_.reset();
    connecting_on_->close();
}

}  // namespace holdfast::postgresql
