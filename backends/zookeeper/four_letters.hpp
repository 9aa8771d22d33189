// Commands that a ZooKeeper server answers outside its protocol, each on a connection of its own
// (ZooKeeper Administrator's Guide, "The Four Letter Words").
#pragma once
#include <string>

#include "shared.hpp"

namespace holdfast::zookeeper {

/// The server's answer to "srvr", "conf", ...; empty when none came by the deadline.
boost::asio::awaitable<std::string> four_letters(std::shared_ptr<Shared>, spi::Endpoint server,
                                                 std::string word, boot_clock::time_point deadline);

}  // namespace holdfast::zookeeper
