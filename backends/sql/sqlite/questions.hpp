// What operators ask of the table: who holds a name, which names are held, and breaking one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "holdfast/client.hpp"

namespace holdfast::sqlite {

/// All of them block until `deadline` at the latest; `detail` receives the words for an error.
result<Inspection> inspect(Connection&, const std::string& name, boot_clock::time_point deadline,
                           std::string& detail);
result<std::vector<std::string>> list(Connection&, const std::string& prefix, std::size_t limit,
                                      boot_clock::time_point deadline, std::string& detail);
result<Broken> break_lock(Connection&, const std::string& name, std::optional<FencingToken>,
                          bool now, boot_clock::time_point deadline, std::string& detail);
/// Takes away what this very file does not promise: one in memory does not survive the machine.
error_code probe(Connection&, Capabilities&, boot_clock::time_point deadline, std::string& detail);

}  // namespace holdfast::sqlite
