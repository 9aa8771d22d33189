// What a soak found, for people and for the page.
#pragma once
#include <cstdio>
#include <string>

#include "director.hpp"

namespace holdfast::soak {

void print(std::FILE*, const Plan&, const Result&);
/// One JSON object; `commit` says what was run.
std::string json(const Plan&, const Result&, const std::string& commit);

}  // namespace holdfast::soak
