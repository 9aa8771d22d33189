// Shared by all connections of one client.
#pragma once
#include "../common/server.hpp"
#include "errors.hpp"
#include "options.hpp"

namespace holdfast::mysql {

using Step = sql::ServerStep;

struct Shared : sql::Server {
    Shared(const spi::Settings& s, const boost::asio::any_io_executor& engine)
        : Server(mysql::errors(), engine), options(s) {}

    const Options options;
};

}  // namespace holdfast::mysql
