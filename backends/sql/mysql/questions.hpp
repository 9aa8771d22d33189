// Operators' calls on one blocking connection.
#pragma once
#include <optional>

#include "steps.hpp"

namespace holdfast::mysql {

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

}  // namespace holdfast::mysql
