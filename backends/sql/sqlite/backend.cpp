#include "backend.hpp"

#include <filesystem>

#include "clocks.hpp"
#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

std::shared_ptr<DatabaseFile> file_of(const spi::Settings& settings, const spi::Context& context) {
    auto file = std::make_shared<DatabaseFile>();
    std::error_code ec;  // the working directory may be gone; then the path stays as it is
    const auto absolute = std::filesystem::absolute(settings.path, ec);
    file->path = ec ? settings.path : absolute.lexically_normal().string();
    file->name_prefix = settings.text("namespace");
    file->extra = settings.text("synchronous") == "extra";
    file->personal = settings.flag("private");
    file->reports.report_to(&context.events);
    return file;
}

}  // namespace

Backend::Backend(const spi::Settings& settings, const spi::Context& context)
    : sql::Backend<Step, Connection, Questions>(promised(), settings, context),
      database_(file_of(settings, context)) {
    keeping_ = std::make_shared<Worker>(database_, context);
    asking_ = std::make_shared<Worker>(database_, context);
}

Backend::~Backend() {
    stop();
}

void Backend::stop() noexcept {
    database_->closing = true;
    database_->reports.report_to(nullptr);
    asking_->close();
    keeping_->close();
}

error_code Backend::gone() const noexcept {
    return database_->closing ? make_error_code(errc::closed) : make_error(Finding::hung);
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
            work->steps[i].tell(*items[i]);
        } else if (database_->closing) {
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

spi::awaitable<void> Backend::close() {
    stop();
    co_return;
}

}  // namespace holdfast::sqlite
