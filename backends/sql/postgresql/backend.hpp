// The postgresql backend: verbs hand their items to a worker's thread; lanes run them on the
// caller's.
#pragma once
#include "../common/backend.hpp"
#include "holdfast/spi/registry.hpp"
#include "listener.hpp"
#include "questions.hpp"
#include "waiters.hpp"
#include "worker.hpp"

namespace holdfast::postgresql {

class Backend final : public sql::Backend<Step, Connection, Questions> {
public:
    Backend(const spi::Settings&, const spi::Context&);
    ~Backend() override;

    spi::awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    std::unique_ptr<spi::Lane> open_lane() override;
    spi::awaitable<void> close() override;
    std::uint64_t requests() const noexcept override { return shared_->requests; }

private:
    void leave_line(const std::string& key);
    void stop() noexcept;
    error_code gone() const noexcept override;
    /// The outcome of an attempt whose job was not answered.
    decltype(spi::Attempt::outcome) not_answered(Step&) const;
    void heard(const Step&, spi::Held&) override;

    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<Waiters> waiters_;
    std::shared_ptr<Listener> listener_;
};

/// Writes the outcome into an attempt, and what may be left at the server into its place.
void take(Step&, const Shared&, spi::Attempt&);
std::unique_ptr<spi::Lane> make_lane(std::shared_ptr<Shared>);

}  // namespace holdfast::postgresql
