// Where figures were measured: without it they mean nothing.
#pragma once
#include <map>
#include <string>

#include "options.hpp"

namespace holdfast::bench {

/// Processor, cores, kernel, compiler, client libraries, load, placement.
std::map<std::string, std::string> environment(const Options&, int pinned_to);

}  // namespace holdfast::bench
