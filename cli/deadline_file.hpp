// The deadline of the lease, shared by holdfast (which moves it) and its guardian (which acts on
// it), and copied to a file for `holdfast check` in the command. The command may write to that
// file, so nothing is judged by it.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/fencing_token.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {

/// The file's 32 bytes, native byte order: it never leaves the machine.
struct DeadlineText {
    char magic[8];        ///< "hfdline1"
    std::uint64_t until;  ///< CLOCK_BOOTTIME in ns; zero: not held yet
    std::uint64_t token;
    std::uint64_t over;  ///< 1: lost or released, whatever `until` says
};
static_assert(sizeof(DeadlineText) == 32);

/// Memory that only holdfast and what it forks can see, and a file in a private folder. Made before
/// the guardian is forked, so that both see the same memory.
class DeadlineFile {
public:
    /// Throws std::runtime_error when the file can be written nowhere.
    DeadlineFile();
    ~DeadlineFile();
    DeadlineFile(const DeadlineFile&) = delete;
    DeadlineFile& operator=(const DeadlineFile&) = delete;

    const std::string& path() const noexcept { return path_; }
    void set_token(FencingToken) noexcept;
    void set_until(boot_clock::time_point) noexcept;
    boot_clock::time_point until() const noexcept;
    void set_over() noexcept;
    /// Removes file and folder; the memory stays. Idempotent, any process.
    void remove() noexcept;

private:
    struct Cell {
        std::atomic<std::uint64_t> until, token, over;
    };
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

    bool make_in(const std::string& base);
    bool publish() noexcept;

    Cell* cell_ = nullptr;
    UniqueFd fd_;
    std::string folder_, path_;
};

/// What `holdfast check` reads.
struct DeadlineReading {
    milliseconds left{};  ///< zero or less: over
    FencingToken token{};
};
/// Nothing when the file is missing or is none.
std::optional<DeadlineReading> read_deadline(const std::string& path);

}  // namespace holdfast::cli
