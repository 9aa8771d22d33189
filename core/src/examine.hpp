// The facts of Client::examine that need no server.
#pragma once
#include "holdfast/spi/check.hpp"

namespace holdfast {

class Engine;

/// Facts about the configuration and this machine.
spi::Facts local_facts(const Engine&);

}  // namespace holdfast
