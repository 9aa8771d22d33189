// A name's state as the text that the store keeps.
#pragma once
#include <optional>
#include <string>

#include "holdfast/spi/name_state.hpp"

namespace ledger {

std::string to_text(const holdfast::spi::NameState&);
/// None: the text is something else's.
std::optional<holdfast::spi::NameState> state_from(const std::string&);

}  // namespace ledger
