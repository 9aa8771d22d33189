// The file that `holdfast config init` writes.
#pragma once
#include <string>

#include "holdfast/spi/registry.hpp"

namespace holdfast::cli {

/// A holdfast.toml with a SQLite or memory default that works, one commented section for each other
/// backend of this build, and every common option with its default and meaning.
std::string config_template(const spi::Registry&);

}  // namespace holdfast::cli
