// What the command says, and with which exit code it ends, when something of its own fails.
#pragma once
#include <exception>
#include <string_view>

namespace holdfast::cli {

/// Says it, with what to do where the machine gives no more. Returns the exit code.
int failed(const std::exception&, std::string_view consequence = {});

}  // namespace holdfast::cli
