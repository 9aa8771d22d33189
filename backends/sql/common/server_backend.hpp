// The frame of a backend on a database server: which outcome an attempt has whose statement was not
// answered, how an owner leaves, and how the client ends.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "backend.hpp"
#include "server.hpp"

namespace holdfast::sql {

/// The constructor of a derived class makes the workers; its destructor calls stop().
template <class Connection, class Questions>
class ServerBackend : public Backend<ServerStep, Connection, Questions> {
public:
    spi::awaitable<void> attempt(std::span<spi::Attempt* const> items) override;
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const> items) override;
    spi::awaitable<void> close() final;
    std::string serving() const final {
        const auto here = server_->hosts.here();
        return here ? server_->hosts.words(*here) : std::string();
    }
    std::uint64_t requests() const noexcept final { return server_->requests; }

protected:
    using Base = Backend<ServerStep, Connection, Questions>;
    using Kind = Step::Kind;

    ServerBackend(const Capabilities& capabilities, const spi::Settings& settings,
                  const spi::Context& context, std::shared_ptr<Server> server)
        : Base(capabilities, settings, context), server_(std::move(server)) {
        server_->reports.report_to(&context.events);
    }

    void stop() noexcept {
        server_->reports.report_to(nullptr);
        server_->watchdog->close();
        stopping();
        if (this->asking_) this->asking_->close();
        if (this->keeping_) this->keeping_->close();
    }
    /// Called when no statement is begun any more, before the threads end.
    virtual void stopping() noexcept {}

    /// The outcome of an attempt whose job was not answered.
    void not_answered(ServerStep& asked, spi::Attempt& a) const {
        // The thread may still write the one that was asked for.
        ServerStep lost;
        lost.marked = OwnerState::of(a.place).marked;
        const bool closing = server_->watchdog->closing();
        const bool connecting = !closing && server_->connecting();
        if (!server_->call_off(asked))
            lost.outcome = spi::Attempt::NoAnswer{gone()};
        else if (connecting)
            lost.outcome =
                spi::Attempt::Failed{server_->errors.make(Error::connecting), connecting};
        else
            lost.outcome = spi::Attempt::Failed{gone()};
        take(lost, *server_, a);
    }
    error_code gone() const noexcept final {
        return server_->watchdog->closing() ? make_error_code(errc::closed)
                                            : server_->errors.make(Error::no_answer);
    }
    /// A job for which no caller waits.
    void spawn(std::shared_ptr<typename Base::Work> work) {
        auto run = this->keeping_->run(std::move(work));
        asio::co_spawn(this->context_.engine, std::move(run), asio::detached);
    }

private:
    const std::shared_ptr<Server> server_;
};

template <class Connection, class Questions>
spi::awaitable<void> ServerBackend<Connection, Questions>::attempt(
    std::span<spi::Attempt* const> items) {
    for (spi::Attempt* a : items)
        if (a->queue) (void)OwnerState::in(a->place);
    auto work = this->job(Kind::attempt, items);
    auto run = this->asking_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (answered)
            take(work->steps[i], *server_, *items[i]);
        else
            not_answered(work->steps[i], *items[i]);
    }
}

template <class Connection, class Questions>
spi::awaitable<void> ServerBackend<Connection, Questions>::withdraw(
    std::span<spi::Attempt* const> items) {
    std::vector<spi::Attempt*> left;
    for (spi::Attempt* a : items) {
        const OwnerState known = OwnerState::of(a->place);
        a->withdrawal = {};
        if (known.touched || known.marked) left.push_back(a);
    }
    if (left.empty()) co_return;
    auto work = this->job(Kind::withdraw, std::span<spi::Attempt* const>(left));
    auto run = this->keeping_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < left.size(); ++i)
        left[i]->withdrawal = answered ? work->steps[i].error : gone();
}

template <class Connection, class Questions>
spi::awaitable<void> ServerBackend<Connection, Questions>::close() {
    // The server may grant what was asked for and is cut now; nobody would give it back.
    auto work = this->job();
    const auto deadline = boot_clock::now() + this->closing_time;
    server_->stop_asking([&](const ServerStep& asked) {
        ServerStep s;
        s.kind = Kind::withdraw;
        s.key = asked.key;
        s.owner = asked.owner;
        s.units = asked.units;
        s.deadline = deadline;
        s.ghost = server_->latest_us(asked.deadline);
        work->add(std::move(s));
    });
    if (!work->steps.empty()) {
        auto run = this->keeping_->run(work);
        (void)co_await std::move(run);
    }
    stop();
}

}  // namespace holdfast::sql
