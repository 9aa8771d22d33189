// Every line of JSON that the command writes and the C interface returns.
#pragma once
#include <boost/json/serialize.hpp>
#include <string>

#include "holdfast/spi/safe_text.hpp"

namespace holdfast {

/// Without the end of the line. A name in it cannot write to a terminal, and reads back as it is.
inline std::string json_text(const boost::json::value& value) {
    return spi::escaped_json(boost::json::serialize(value));
}

}  // namespace holdfast
