// The shared deadline, made and read.
#include "deadline_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "unique_fd.hpp"

namespace holdfast::cli {
namespace {

constexpr char magic[] = "hfdline1";

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::string private_folder() {
    for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
        const char* base = std::getenv(variable);
        if (!base || *base != '/') continue;
        std::string folder = std::string(base) + "/holdfast-XXXXXX";
        if (::mkdtemp(folder.data())) return folder;
    }
    std::string folder = "/tmp/holdfast-XXXXXX";
    if (!::mkdtemp(folder.data())) fail("cannot make a private folder in /tmp");
    return folder;
}

}  // namespace

DeadlineFile::DeadlineFile() : folder_(private_folder()), path_(folder_ + "/deadline") {
    const UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd || ::ftruncate(fd.get(), sizeof(DeadlineCell)) != 0) {
        remove();
        fail("cannot make " + path_);
    }
    void* at =
        ::mmap(nullptr, sizeof(DeadlineCell), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) {
        remove();
        fail("cannot map " + path_);
    }
    cell_ = new (at) DeadlineCell{};
    std::memcpy(cell_->magic, magic, sizeof cell_->magic);
}

DeadlineFile::~DeadlineFile() {
    ::munmap(cell_, sizeof(DeadlineCell));
}

void DeadlineFile::set_until(boot_clock::time_point t) noexcept {
    cell_->until.store(static_cast<std::uint64_t>(t.time_since_epoch().count()));
}

boot_clock::time_point DeadlineFile::until() const noexcept {
    return boot_clock::time_point(
        boot_clock::duration(static_cast<boot_clock::rep>(cell_->until.load())));
}

void DeadlineFile::remove() noexcept {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
}

std::optional<DeadlineReading> read_deadline(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat facts {};
    if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        facts.st_size != static_cast<off_t>(sizeof(DeadlineCell)))
        return {};
    void* at = ::mmap(nullptr, sizeof(DeadlineCell), PROT_READ, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) return {};
    const auto* cell = static_cast<const DeadlineCell*>(at);
    std::optional<DeadlineReading> reading;
    if (std::memcmp(cell->magic, magic, sizeof cell->magic) == 0) {
        const boot_clock::time_point until(
            boot_clock::duration(static_cast<boot_clock::rep>(cell->until.load())));
        reading.emplace();
        reading->token = FencingToken{cell->token.load()};
        reading->left = cell->over.load() != 0
                            ? milliseconds::zero()
                            : std::chrono::duration_cast<milliseconds>(until - boot_clock::now());
    }
    ::munmap(at, sizeof(DeadlineCell));
    return reading;
}

}  // namespace holdfast::cli
