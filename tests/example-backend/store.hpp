// The server of the example: a made-up store of keys and values in one file, with transactions that
// compare and commit. It knows nothing of locks.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ledger {

/// A value, and how often it was written. A removed one is empty.
struct Entry {
    std::string text;
    std::uint64_t version = 0;
};
/// All keys, as they were at one moment.
using Snapshot = std::map<std::string, Entry, std::less<>>;

/// What a transaction writes, if the key still has the version that was read (0: none).
struct Write {
    std::string key, text;
    std::uint64_t version = 0;
};
enum class Commit : std::uint8_t {
    done,      ///< all is written
    conflict,  ///< nothing is: another transaction came first
    busy,      ///< nothing is: another process is writing
    refused    ///< nothing is: the file cannot be written
};

/// Any number of processes may have the file open. Thread-safe.
class Store {
public:
    explicit Store(std::filesystem::path file) : file_(std::move(file)) {}
    /// A store that is not there yet is empty. Throws std::runtime_error when it cannot be read.
    Snapshot read() const;
    /// Does not wait.
    Commit commit(const std::vector<Write>&) noexcept;

private:
    void replace(const Snapshot&) const;

    const std::filesystem::path file_;
};

}  // namespace ledger
