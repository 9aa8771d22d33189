#include "metrics_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <utility>

#include "holdfast/spi/signal_masked_thread.hpp"
#include "message.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {
namespace {

constexpr std::chrono::seconds look_every{1};

unsigned mode_of_new_files() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666U & ~mask;
}

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

MetricsFile::MetricsFile(std::string path, std::string_view backend)
    : path_(std::move(path)),
      labels_{{"backend", std::string(backend)},
              {"run", std::filesystem::path(path_).stem().string()}},
      mode_(mode_of_new_files()) {}

std::string MetricsFile::write(const Stats& stats) {
    if (!wanted()) return {};
    std::string text = prometheus_text(stats, labels_);
    if (text == written_) return {};
    std::string fault = replace(text);
    if (fault.empty()) written_ = std::move(text);
    return fault;
}

void MetricsFile::update(const Stats& stats) {
    const std::string fault = write(stats);
    if (fault.empty() || std::exchange(warned_, true)) return;
    warn(fault + "\nThe command goes on; holdfast tries again with the next change.");
}

std::string MetricsFile::replace(std::string_view text) const {
    const auto fault = [this] {
        return fmt::format("cannot write --metrics {}: {}", in_quotes(path_), std::strerror(errno));
    };
    // Renaming onto a device or a link would put a file in its place.
    struct stat facts {};
    if (::lstat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
        return fmt::format("cannot write --metrics {}: it is not a regular file", in_quotes(path_));
    std::string beside = path_ + ".XXXXXX";  // in the same file system; no *.prom
    const UniqueFd fd(::mkostemp(beside.data(), O_CLOEXEC));
    if (!fd) return fault();
    if (write_all(fd.get(), text) && ::fchmod(fd.get(), mode_) == 0 &&
        std::rename(beside.c_str(), path_.c_str()) == 0)
        return {};
    std::string why = fault();
    ::unlink(beside.c_str());
    return why;
}

MetricsUpdates::MetricsUpdates(MetricsFile& file, const Client& client)
    : file_(file), client_(client) {
    if (file_.wanted()) thread_ = spi::signal_masked_thread([this] { run(); });
}

MetricsUpdates::~MetricsUpdates() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard hold(mutex_);
        ended_ = true;
    }
    ends_.notify_one();
    thread_.join();
    update();
}

/// A number that is missing once, for want of memory, comes with the next look.
void MetricsUpdates::update() noexcept {
    try {
        file_.update(client_.stats());
    } catch (const std::exception&) {
    }
}

void MetricsUpdates::run() {
    std::unique_lock hold(mutex_);
    while (!ends_.wait_for(hold, look_every, [this] { return ended_; }))
        update();
}

}  // namespace holdfast::cli
