// The holder of a lock, in words.
#pragma once
#include <string>

#include "holdfast/client.hpp"

namespace holdfast::cli {

/// "web2 (pid 4711)", "a foreign client"; escaped.
std::string who(const Holder&);
/// "web2 (pid 4711) for 3m12s, token 88, 21 s left"
std::string described(const Holder&);
/// "held by ... and 2 others", "not held, but closed for another 3 s", or "free".
std::string described_holders(const Inspection&);
/// The same, and how many wait.
std::string described(const Inspection&);
/// Nobody holds it, and nothing else keeps it closed.
/// Why a request failed: the server's own words if it said any.
std::string in_words(const RequestError&);
bool is_free(const Inspection&);
/// Every holder is this process.
bool all_ours(const Inspection&);
/// Our place among the waiters, from 1; 0 when we are not seen there.
std::size_t own_place(const Inspection&);

}  // namespace holdfast::cli
