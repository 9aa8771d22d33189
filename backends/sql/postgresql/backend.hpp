// The postgresql backend: verbs hand their items to a worker's thread; lanes run them on the
// caller's.
#pragma once
#include <memory>

#include "holdfast/spi/registry.hpp"
#include "line.hpp"
#include "listener.hpp"
#include "worker.hpp"

namespace holdfast::postgresql {

/// What stays with an acquisition from one verb to the next.
struct Place {
    bool touched = false;    ///< something of it may be at the server
    std::int64_t ghost = 0;  ///< until when a request of its own that was not answered may act
};

class Backend final : public spi::Backend {
public:
    Backend(const spi::Settings&, spi::Context);
    ~Backend() override;

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch() const noexcept override { return 256; }
    spi::awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    spi::awaitable<error_code> withdraw(std::span<spi::Attempt* const>) override;
    spi::awaitable<void> renew(std::span<spi::Held* const>) override;
    spi::awaitable<void> release(std::span<spi::Held* const>) override;
    spi::awaitable<result<Inspection>> inspect(std::string_view, boot_clock::time_point,
                                               std::string& detail) override;
    spi::awaitable<result<std::vector<std::string>>> list(std::string_view, std::size_t limit,
                                                          boot_clock::time_point,
                                                          std::string& detail) override;
    spi::awaitable<result<Broken>> break_lock(std::string_view, std::optional<FencingToken>,
                                              bool now, boot_clock::time_point,
                                              std::string& detail) override;
    spi::awaitable<result<Capabilities>> probe(boot_clock::time_point,
                                               std::string& detail) override;
    std::unique_ptr<spi::Lane> open_lane() override;
    spi::awaitable<void> close() override;
    std::uint64_t requests() const noexcept override { return shared_->requests; }

private:
    std::shared_ptr<Job> job(std::size_t steps) const;
    template <class T, class Ask>
    spi::awaitable<result<T>> question(Ask ask, boot_clock::time_point deadline,
                                       std::string* detail);
    void leave_line(const std::string& key);
    void stop() noexcept;
    error_code gone() const noexcept;

    const Capabilities capabilities_;
    const spi::Context context_;
    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<Line> line_;
    const std::shared_ptr<Worker> grants_, keeping_;
    const std::shared_ptr<Listener> listener_;
};

/// A step with everything that a verb's item says.
Step step_of(const Shared&, Step::Kind, const spi::Attempt&);
Step step_of(const Shared&, Step::Kind, const spi::Held&);
/// Writes what became of an attempt, and into its place what may have been left at the server.
void take(Step&&, const Shared&, spi::Attempt&);
std::unique_ptr<spi::Lane> make_lane(std::shared_ptr<Shared>, std::shared_ptr<Line>);

}  // namespace holdfast::postgresql
