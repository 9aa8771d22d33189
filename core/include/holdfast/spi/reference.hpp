// What the command and the documentation share with core: texts for errors, and the reference page.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/registry.hpp"

namespace holdfast::spi {

/// docs/configuration.md, from the option tables of the given backends.
HOLDFAST_EXPORT std::string configuration_reference(const Registry&);

/// Text for a cell of a Markdown table, which an unescaped '|' would end.
HOLDFAST_EXPORT std::string table_cell(std::string_view);

/// The candidate nearest to `word` by edit distance; empty when none is near.
HOLDFAST_EXPORT std::string nearest(std::string_view word,
                                    const std::vector<std::string>& candidates);

}  // namespace holdfast::spi
