// What operators ask, on one blocking connection.
#pragma once
#include <optional>

#include "steps.hpp"

namespace holdfast::postgresql {

result<Inspection> inspect(Connection&, const std::string& name, boot_clock::time_point deadline,
                           std::string& detail);
result<std::vector<std::string>> list(Connection&, const std::string& prefix, std::size_t limit,
                                      boot_clock::time_point deadline, std::string& detail);
result<Broken> break_lock(Connection&, const std::string& name,
                          std::optional<FencingToken> if_token, bool now,
                          boot_clock::time_point deadline, std::string& detail);
/// What this server really promises.
result<Capabilities> probe(Connection&, boot_clock::time_point deadline, std::string& detail);

}  // namespace holdfast::postgresql
