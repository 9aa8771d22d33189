// Reads a file in blocks of one record, through a buffer of its own.
#pragma once
#include <string>
#include <vector>

#include "checker/format.hpp"

namespace holdfast::bench::history {

class Blocks {
public:
    explicit Blocks(const std::string& path);
    ~Blocks();
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;

    /// 64 bytes that stay until the next call; null at the end, or where less is left.
    const char* next();
    /// The errno of opening or reading, or 0.
    int error() const { return error_; }
    /// How many whole blocks the file had when it was opened.
    std::uint64_t expected() const { return expected_; }
    std::uint64_t bytes() const { return bytes_; }
    /// Bytes after the last whole block, known at the end.
    std::size_t rest() const { return rest_; }

private:
    int fd_ = -1, error_ = 0;
    std::uint64_t expected_ = 0, bytes_ = 0;
    std::size_t at_ = 0, have_ = 0, rest_ = 0;
    std::vector<char> buffer_;
};

}  // namespace holdfast::bench::history
