// The deadline of the lease, shared by holdfast (which moves it), its guardian (which acts on it)
// and `holdfast check` in the command (which reads it).
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/fencing_token.hpp"

namespace holdfast::cli {

/// The file's 32 bytes, native byte order: it never leaves the machine.
struct DeadlineCell {
    char magic[8];                     ///< "hfdline1"
    std::atomic<std::uint64_t> until;  ///< CLOCK_BOOTTIME in ns; zero: not held yet
    std::atomic<std::uint64_t> token;
    std::atomic<std::uint64_t> over;  ///< 1: lost or released, whatever `until` says
};
static_assert(sizeof(DeadlineCell) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

/// A file in a private folder, mapped shared. Made before the guardian is forked, so that both see
/// the same memory.
class DeadlineFile {
public:
    /// Throws std::system_error.
    DeadlineFile();
    ~DeadlineFile();
    DeadlineFile(const DeadlineFile&) = delete;
    DeadlineFile& operator=(const DeadlineFile&) = delete;

    const std::string& path() const noexcept { return path_; }
    void set_token(FencingToken t) noexcept { cell_->token.store(t.value); }
    void set_until(boot_clock::time_point) noexcept;
    boot_clock::time_point until() const noexcept;
    void set_over() noexcept { cell_->over.store(1); }
    /// Removes file and folder; the mapping stays. Idempotent, any process.
    void remove() noexcept;

private:
    std::string folder_, path_;
    DeadlineCell* cell_ = nullptr;
};

/// What `holdfast check` reads.
struct DeadlineReading {
    milliseconds left{};  ///< zero or less: over
    FencingToken token{};
};
/// Nothing when the file is missing or is none.
std::optional<DeadlineReading> read_deadline(const std::string& path);

}  // namespace holdfast::cli
