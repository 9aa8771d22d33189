// The postgresql backend: verbs hand their items to a worker's thread; lanes run them on the
// caller's.
#pragma once
#include "../common/server_backend.hpp"
#include "holdfast/spi/registry.hpp"
#include "listener.hpp"
#include "questions.hpp"
#include "waiters.hpp"
#include "worker.hpp"

namespace holdfast::postgresql {

class Backend final : public sql::ServerBackend<Connection, Questions> {
public:
    Backend(const spi::Settings&, const spi::Context&);
    ~Backend() override;

    spi::awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    std::unique_ptr<spi::Lane> open_lane() override;

private:
    Backend(const spi::Settings&, const spi::Context&, std::shared_ptr<Shared>);
    void leave_line(const std::string& key);
    void stopping() noexcept override;
    void heard(const Step&, spi::Held&) override;

    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<Waiters> waiters_;
    std::shared_ptr<Listener> listener_;
};

}  // namespace holdfast::postgresql
