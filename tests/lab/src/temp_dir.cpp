// The name is drawn here instead of by mkdtemp, because the reaper has to know it before the
// directory exists: otherwise a crash between the two would leave a directory that nobody removes.
#include "holdfast/lab/temp_dir.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "reaper.hpp"

namespace holdfast::lab {

TempDir::TempDir() : owner_(::getpid()) {
    const char* base = std::getenv("TMPDIR");
    const std::filesystem::path root =
        std::filesystem::absolute(base != nullptr && *base != '\0' ? base : "/tmp");
    if (root.native().find('\n') != std::string::npos) {
        throw LabError("TMPDIR contains a line break");
    }
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
        throw LabError("no random bytes for the name of a temporary directory");
    }
    path_ = root / fmt::format("holdfast-lab-{:016x}", random);
    slot_ = detail::Reaper::instance().watch_directory(path_);
    if (::mkdir(path_.c_str(), 0700) != 0) {
        const int error = errno;
        detail::Reaper::instance().forget(slot_);
        throw LabError(fmt::format("cannot make {}: {}", path_.string(), std::strerror(error)));
    }
}

TempDir::TempDir(TempDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), slot_(other.slot_), owner_(other.owner_) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, {});
        slot_ = other.slot_;
        owner_ = other.owner_;
    }
    return *this;
}

TempDir::~TempDir() {
    remove();
}

std::filesystem::path TempDir::operator/(std::string_view name) const {
    return path_ / name;
}

void TempDir::keep() noexcept {
    if (!path_.empty() && owner_ == ::getpid()) {
        detail::Reaper::instance().forget(slot_);
        owner_ = 0;
    }
}

void TempDir::remove() noexcept {
    if (path_.empty() || owner_ != ::getpid()) {
        return;
    }
    std::error_code ignored;
    // A dying server may still create a file while we remove: a second look is enough, and what is
    // left after that is the reaper's.
    for (int round = 0; round < 3 && std::filesystem::exists(path_, ignored); ++round) {
        std::filesystem::remove_all(path_, ignored);
    }
    if (!std::filesystem::exists(path_, ignored)) {
        detail::Reaper::instance().forget(slot_);
    }
    path_.clear();
}

}  // namespace holdfast::lab
