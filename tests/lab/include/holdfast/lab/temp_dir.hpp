// A directory for one server or one test. It goes away with its owner, also when the owner crashes,
// so that a year of test runs leaves nothing in /tmp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace holdfast::lab {

/// A fresh directory `holdfast-lab-...`, mode 0700, below $TMPDIR or else /tmp, removed with all
/// its content on destruction and also when this process dies in any way.
///
/// Thread safety: none of its own. In a forked child the destructor removes nothing.
class TempDir {
public:
    /// Makes the directory. Errors: LabError when it cannot be made.
    TempDir();
    TempDir(TempDir&& other) noexcept;
    TempDir& operator=(TempDir&& other) noexcept;
    ~TempDir();

    /// The absolute path; empty after a move.
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

    /// The path of `name` inside the directory; makes nothing.
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const;

    /// Leaves the directory on disk for somebody to look at, whatever happens from now on.
    void keep() noexcept;

private:
    void remove() noexcept;

    std::filesystem::path path_;
    std::uint64_t slot_ = 0;
    pid_t owner_ = 0;
};

}  // namespace holdfast::lab
