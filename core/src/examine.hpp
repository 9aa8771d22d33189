// The facts of Client::examine that no server is asked for.
#pragma once
#include "holdfast/spi/check.hpp"

namespace holdfast {

class Engine;

/// Of the configuration and of this machine.
spi::Facts local_facts(const Engine&);

}  // namespace holdfast
