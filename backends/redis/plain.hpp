// mode=plain: the documents' two commands, byte for byte, and the renewal that belongs to them.
#pragma once
#include <optional>

#include "protocol.hpp"

namespace holdfast::redis {

void add_plain_set(Command&, const std::string& key, const spi::Attempt&);
/// A key that is already there may be ours after a lost answer: the caller finds out.
void take_plain_set(const Reply&, spi::Attempt&);
/// Nothing: it was not there any more as ours, and a GET tells what is.
std::optional<ReleaseResult> take_plain_release(const Reply&) noexcept;
ReleaseResult take_plain_get(const Reply&) noexcept;

}  // namespace holdfast::redis
