#include "backend.hpp"

#include <filesystem>

#include "clocks.hpp"
#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

std::shared_ptr<Place> place_of(const spi::Settings& settings, const spi::Context& context) {
    auto place = std::make_shared<Place>();
    std::error_code ec;  // the working directory may be gone; then the path stays as it is
    const auto absolute = std::filesystem::absolute(settings.path, ec);
    place->path = ec ? settings.path : absolute.lexically_normal().string();
    place->name_prefix = settings.text("namespace");
    place->extra = settings.text("synchronous") == "extra";
    place->personal = settings.flag("private");
    place->warnings.report_to(&context.events);
    return place;
}

}  // namespace

Backend::Backend(const spi::Settings& settings, const spi::Context& context)
    : sql::Backend<Step, Connection, Questions>(promised(), settings, context),
      place_(place_of(settings, context)) {
    keeping_ = std::make_shared<Worker>(place_, context);
    asking_ = std::make_shared<Worker>(place_, context);
}

Backend::~Backend() {
    stop();
}

void Backend::stop() noexcept {
    place_->closing = true;
    place_->warnings.report_to(nullptr);
    asking_->close();
    keeping_->close();
}

error_code Backend::gone() const noexcept {
    return place_->closing ? make_error_code(errc::closed) : make_error(Finding::hung);
}

spi::awaitable<void> Backend::attempt(std::span<spi::Attempt* const> items) {
    auto work = job(Step::Kind::attempt, items);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (!items[i]->queue) continue;
        if (!items[i]->place) items[i]->place = std::make_shared<std::int64_t>(boot_us());
        work->steps[i].ticket = *static_cast<const std::int64_t*>(items[i]->place.get());
    }
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (answered) {
            items[i]->outcome = work->steps[i].outcome;
            items[i]->detail = std::move(work->steps[i].detail);
        } else if (place_->closing) {
            items[i]->outcome = spi::Attempt::Failed{gone()};
        } else {
            items[i]->outcome = spi::Attempt::NoAnswer{gone()};
        }
    }
}

spi::awaitable<void> Backend::withdraw(std::span<spi::Attempt* const> items) {
    auto work = job(Step::Kind::withdraw, items);
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i)
        items[i]->withdrawal = answered ? work->steps[i].error : gone();
}

std::unique_ptr<spi::Lane> Backend::open_lane() {
    return make_lane(place_);
}

spi::awaitable<void> Backend::close() {
    stop();
    co_return;
}

}  // namespace holdfast::sqlite
