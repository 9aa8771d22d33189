// What operators ask of the table: the holder of a name, the names that are held, and breaking one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "holdfast/client.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast::sqlite {

/// What sql::Backend asks of a connection; `detail` receives the words for an error.
struct Questions {
    static result<Inspection> inspect(Connection&, const std::string& name,
                                      boot_clock::time_point deadline, std::string& detail);
    static result<std::vector<std::string>> list(Connection&, const std::string& prefix,
                                                 std::size_t limit, boot_clock::time_point deadline,
                                                 std::string& detail);
    static result<std::vector<Broken>> break_lock(Connection&, const std::string& name,
                                                  const BreakOptions& options,
                                                  boot_clock::time_point deadline,
                                                  std::string& detail);
    static result<std::vector<Holder>> request_release(Connection&, const std::string& name,
                                                       const HolderFilter& which,
                                                       boot_clock::time_point deadline,
                                                       std::string& detail);
    static result<Examination> examine(Connection&, boot_clock::time_point deadline,
                                       std::string& detail);  // examine.cpp
};

/// What a file promises, before it was looked at.
Capabilities promised() noexcept;
/// Upstream's WAL-reset bug is in that version of SQLite, as numbered by it.
bool may_lose_commits(int version) noexcept;
/// All that examine() judges by.
std::vector<spi::Check> all_checks();

}  // namespace holdfast::sqlite
