// The checks of `holdfast doctor`, and the facts that servers give in texts.
#pragma once
#include <span>
#include <string_view>

#include "holdfast/spi/check.hpp"

namespace holdfast::zookeeper {

std::span<const spi::Check> checks_of_servers();
std::span<const spi::Check> checks_of_ensembles();
/// Of /zookeeper/config. One line for each server:
/// "server.1=10.0.0.1:2888:3888:participant;2181". A server that stands alone has none.
void note_config(spi::Facts&, std::string_view text);

}  // namespace holdfast::zookeeper
