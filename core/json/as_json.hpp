// The answers to an operator's questions as JSON, for the command and the C interface alike.
// docs/json.md has the fields.
#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/election.hpp"

namespace holdfast {

/// A holder or a waiter.
boost::json::object as_json(const Holder&);
/// holdfast.inspect/1. `url`: of the client that asked.
boost::json::object as_json(const Inspection&, const std::string& url);
/// holdfast.list/1. `seen`: the long form.
boost::json::object listed(std::string_view name, const Inspection* seen = nullptr);
/// holdfast.ask/1.
boost::json::object asked(std::string_view name, const std::vector<Holder>&);
/// holdfast.break/1.
boost::json::object broken(std::string_view name, const Broken&);
/// holdfast.break/1 of a name where nothing was broken.
boost::json::object not_broken(std::string_view name, std::string_view why);
/// holdfast.leader/1.
boost::json::object led(std::string_view name, const std::optional<Leader>&);
/// holdfast.doctor/1. `accepted`: ids of findings that do not count.
boost::json::object as_json(const Examination&, const Client&,
                            const std::vector<std::string>& accepted = {});

/// The worst verdict of the findings that were not accepted.
Verdict verdict_without(const Examination&, const std::vector<std::string>& accepted);
/// RFC 3339 in UTC, to the second.
std::string utc_text(std::chrono::system_clock::time_point);

}  // namespace holdfast
