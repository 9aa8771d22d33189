// The shared deadline, made and read.
#include "deadline_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "holdfast/spi/exhausted.hpp"

namespace holdfast::cli {
namespace {

constexpr char magic[] = "hfdline1";

/// XDG_RUNTIME_DIR stays that of the caller under sudo, who could then put another file in the
/// place of ours. Right is one of this user's, which nobody else can write to.
bool is_ours(const char* folder) {
    struct stat facts {};
    if (::stat(folder, &facts) != 0) return false;
    errno = EPERM;
    return facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

DeadlineFile::DeadlineFile() {
    void* at =
        ::mmap(nullptr, sizeof(Cell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "no shared memory");
    cell_ = new (at) Cell{};
    std::string tried;
    for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR", ""}) {
        const char* base = *variable != '\0' ? std::getenv(variable) : "/tmp";
        if (!base || *base != '/') continue;
        const bool runtime = std::string_view(variable) == "XDG_RUNTIME_DIR";
        if ((!runtime || is_ours(base)) && make_in(base)) return;
        if (spi::is_exhausted(errno)) {
            const int error = errno;
            remove();
            ::munmap(cell_, sizeof(Cell));
            throw std::system_error(error, std::generic_category(),
                                    "cannot open a file for the lock's deadline");
        }
        tried += fmt::format("{}{}: {}", tried.empty() ? "" : ", ", base, std::strerror(errno));
        remove();
    }
    ::munmap(cell_, sizeof(Cell));
    throw std::runtime_error(
        fmt::format("cannot write a file of 32 bytes for the lock's deadline ({})\n"
                    "Make room there, or name another folder with TMPDIR.",
                    tried));
}

bool DeadlineFile::make_in(const std::string& base) {
    folder_ = base + "/holdfast-XXXXXX";
    if (!::mkdtemp(folder_.data())) {
        folder_.clear();
        return false;
    }
    path_ = folder_ + "/deadline";
    fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return fd_ && publish();
}

DeadlineFile::~DeadlineFile() {
    ::munmap(cell_, sizeof(Cell));
}

/// The whole of it each time: what the command has done to the file is undone.
bool DeadlineFile::publish() noexcept {
    DeadlineText text{{}, cell_->until.load(), cell_->token.load(), cell_->over.load()};
    std::memcpy(text.magic, magic, sizeof text.magic);
    const ssize_t n = ::pwrite(fd_.get(), &text, sizeof text, 0);
    if (n == static_cast<ssize_t>(sizeof text)) return true;
    if (n >= 0) errno = ENOSPC;
    return false;
}

void DeadlineFile::set_token(FencingToken t) noexcept {
    cell_->token.store(t.value);
    publish();
}

void DeadlineFile::set_until(boot_clock::time_point t) noexcept {
    cell_->until.store(static_cast<std::uint64_t>(t.time_since_epoch().count()));
    publish();
}

boot_clock::time_point DeadlineFile::until() const noexcept {
    return boot_clock::time_point(
        boot_clock::duration(static_cast<boot_clock::rep>(cell_->until.load())));
}

void DeadlineFile::set_over() noexcept {
    cell_->over.store(1);
    if (!publish()) remove();  // a missing file means the same
}

void DeadlineFile::remove() noexcept {
    if (folder_.empty()) return;
    const int before = errno;
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
    errno = before;
}

std::optional<DeadlineReading> read_deadline(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    DeadlineText text{};
    if (!fd || ::pread(fd.get(), &text, sizeof text, 0) != static_cast<ssize_t>(sizeof text) ||
        std::memcmp(text.magic, magic, sizeof text.magic) != 0)
        return {};
    const boot_clock::time_point until(
        boot_clock::duration(static_cast<boot_clock::rep>(text.until)));
    DeadlineReading reading;
    reading.token = FencingToken{text.token};
    reading.left = text.over != 0
                       ? milliseconds::zero()
                       : std::chrono::duration_cast<milliseconds>(until - boot_clock::now());
    return reading;
}

}  // namespace holdfast::cli
