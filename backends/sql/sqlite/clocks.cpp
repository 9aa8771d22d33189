#include "clocks.hpp"

#include <limits.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <mutex>
#include <optional>
#include <string_view>

#include "of_process.hpp"

namespace holdfast::sqlite {
namespace {

std::int64_t read_clock(clockid_t id) noexcept {
    timespec t{};
    ::clock_gettime(id, &t);
    return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

std::string link_text(const char* path) {
    std::array<char, 64> text{};
    const auto n = ::readlink(path, text.data(), text.size());
    return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
}

/// Containers may run in a time namespace whose boot time is shifted; two of them can share a file.
/// Nothing: the offset cannot be determined.
std::optional<std::int64_t> namespace_offset_us() {
    const std::string own = link_text("/proc/self/ns/time");
    // A kernel without time namespaces has one clock; a process that does not see itself in /proc
    // may be in any.
    if (own.empty()) {
        if (link_text("/proc/self").empty()) return {};
        return 0;
    }
    if (own == "time:[4026531834]") return 0;  // the kernel's first namespace
    // The file tells the offsets for children; they are ours unless this process prepares another
    // namespace for its children.
    if (own != link_text("/proc/self/ns/time_for_children")) return {};
    std::ifstream in("/proc/self/timens_offsets");
    std::string clock;
    std::int64_t seconds = 0, nanoseconds = 0;
    while (in >> clock >> seconds >> nanoseconds)
        if (clock == "boottime" || clock == "7") return seconds * 1'000'000 + nanoseconds / 1000;
    return {};
}

const std::optional<std::int64_t>& offset_us() {
    // The child of a fork may be in another namespace than its parent.
    struct Offset {
        std::mutex mutex;
        const std::optional<std::int64_t> value = namespace_offset_us();
    };
    return of_process<Offset>().value;
}

std::int64_t real_wall_us() noexcept {
    return read_clock(CLOCK_REALTIME);
}

}  // namespace

std::int64_t boot_us() noexcept {
    return read_clock(CLOCK_BOOTTIME) - offset_us().value_or(0);
}

bool boot_clock_known() noexcept {
    return offset_us().has_value();
}

const std::string& boot_id() {
    static const std::string id = [] {
        std::ifstream in("/proc/sys/kernel/random/boot_id");
        std::string text;
        in >> text;
        return text;
    }();
    return id;
}
[[maybe_unused]] const auto& boot_id_at_load = boot_id();

std::int64_t (*wall_us)() noexcept = real_wall_us;

}  // namespace holdfast::sqlite
