#include "failure.hpp"

#include <fmt/format.h>

#include "exit_code.hpp"
#include "holdfast/spi/exhausted.hpp"
#include "message.hpp"

namespace holdfast::cli {

int failed(const std::exception& e, std::string_view consequence) {
    const bool exhausted = spi::is_exhausted(e);
    std::string text = exhausted ? fmt::format("this machine has no room for the command: {}\n{}",
                                               e.what(), spi::exhausted_remedy)
                                 : e.what();
    if (!consequence.empty()) text += fmt::format("\n{}", consequence);
    complain(text);
    return exhausted ? exit_unavailable : exit_internal;
}

}  // namespace holdfast::cli
