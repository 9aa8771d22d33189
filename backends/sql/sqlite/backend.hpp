// The sqlite backend: verbs hand their items to the worker's thread; lanes run them on the
// caller's.
#pragma once
#include "../common/backend.hpp"
#include "holdfast/spi/registry.hpp"
#include "questions.hpp"
#include "worker.hpp"

namespace holdfast::sqlite {

class Backend final : public sql::Backend<Step, Connection, Questions> {
public:
    Backend(const spi::Settings&, const spi::Context&);
    ~Backend() override;

    spi::awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    std::unique_ptr<spi::Lane> open_lane() override;
    spi::awaitable<void> close() override;
    std::uint64_t requests() const noexcept override { return database_->requests; }

private:
    error_code gone() const noexcept override;
    void stop() noexcept;

    const std::shared_ptr<DatabaseFile> database_;
};

}  // namespace holdfast::sqlite
