// What a SQL server answers to the lab.
#pragma once

#include <string>
#include <vector>

namespace holdfast::lab {

/// The text of a result: rows of columns, NULL as an empty text.
using SqlRows = std::vector<std::vector<std::string>>;

}  // namespace holdfast::lab
