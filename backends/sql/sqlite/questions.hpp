// Operators' calls on the table: the holder of a name, the names that are held, and breaking one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "holdfast/client.hpp"
#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast::sqlite {

/// Operators' calls for sql::Backend, on a connection.
struct Questions {
    static spi::Answer<spi::Survey> survey(Connection&, const std::string& name,
                                           boot_clock::time_point deadline);
    static spi::Answer<spi::Survey> tell(Connection&, const std::string& name,
                                         const HolderFilter& which, spi::Tell what,
                                         boot_clock::time_point deadline);
    static spi::Answer<std::string> note(Connection&, const std::string& name,
                                         const std::optional<std::string>& text,
                                         boot_clock::time_point deadline);
    static spi::Answer<std::vector<std::string>> list(Connection&, const std::string& prefix,
                                                      std::size_t limit,
                                                      boot_clock::time_point deadline);
    static spi::Answer<Examination> examine(Connection&,
                                            boot_clock::time_point deadline);  // examine.cpp
};

/// What a file promises before it was examined.
Capabilities promised() noexcept;
/// True for versions of SQLite with its WAL-reset bug.
bool may_lose_commits(int version) noexcept;
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::sqlite
