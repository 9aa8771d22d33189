// The text of Lock::place, and what two of them say about each other.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/spi/config.hpp"

namespace holdfast {

/// What the servers of this configuration keep apart, with the namespace: the place of a lock up to
/// its name.
std::string place_before_name(const ResolvedBackend&);

/// The name in a place of ours, with its namespace; in another one all of it.
std::string_view name_in(std::string_view place) noexcept;

/// Two different places of one name: the facts that leave open whether they are one lock, for an
/// error. Empty: they are two.
std::string left_open(std::string_view a, std::string_view b);

}  // namespace holdfast
