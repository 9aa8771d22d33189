// The record of a break: written beside the name after the break, and shown by inspect().
#pragma once
#include <string>

#include "engine.hpp"
#include "holdfast/client.hpp"

namespace holdfast {

/// "1 MILLISECONDS NOW TOKEN BREAKER OWNER": since 1970, 16 digits; 0 or 1; the two owner ids of
/// the client that broke the lease, and of the lease.
std::string to_text(const BreakRecord&, const std::string& breaker);
/// Nothing: the text is not one of to_text().
std::optional<BreakRecord> read_break_record(std::string_view text);

/// The name of the user, or of the one who called sudo.
std::string this_user();

/// The backend's break_lock(), then its record. BreakOptions::note names the breaker.
spi::awaitable<spi::Answer<std::vector<Broken>>> break_and_record(Engine&, std::string name,
                                                                  BreakOptions,
                                                                  boot_clock::time_point deadline);
/// The backend's inspect(), with the record of a break within the last day.
spi::awaitable<spi::Answer<Inspection>> inspect_with_record(spi::Backend&, std::string name,
                                                            boot_clock::time_point deadline);

}  // namespace holdfast
