// What `holdfast inspect` shows: a name's holders and waiters, in words and as JSON.
#pragma once
#include <boost/json/object.hpp>
#include <string>

#include "holdfast/client.hpp"

namespace holdfast::cli {

class Renewals;

/// Several lines; `renewals`: with what was seen of each holder's renewals.
std::string as_text(const Inspection&, const Renewals* renewals = nullptr);
/// With what was seen of each holder's renewals. `url`: of the client that asked.
boost::json::object as_json(const Inspection&, const std::string& url, const Renewals&);

}  // namespace holdfast::cli
