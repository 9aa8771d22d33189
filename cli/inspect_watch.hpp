// `holdfast inspect --watch`: looks again and again.
#pragma once
#include <string>

#include "holdfast/client.hpp"
#include "signals.hpp"

namespace holdfast::cli {

/// Until SIGINT, or until nobody reads standard output: 0. Another signal that ends things ends it
/// with 128+n, and an error that no later look can change with that error's code. On a terminal it
/// redraws its lines in place, elsewhere it writes a block, or a line of JSON, for each change of
/// anything but times. A server that does not answer is such a change.
int watch(Client&, const std::string& name, milliseconds interval, bool json, Signals&);

}  // namespace holdfast::cli
