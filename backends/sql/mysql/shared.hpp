// Shared by all connections of one client.
#pragma once
#include "../common/server.hpp"
#include "errors.hpp"
#include "options.hpp"

namespace holdfast::mysql {

using Step = sql::ServerStep;

struct Shared : sql::Server {
    Shared(const spi::Settings& s, const boost::asio::any_io_executor& engine)
        : Shared(Options(s), engine) {}

    const Options options;

private:
    Shared(Options o, const boost::asio::any_io_executor& engine)
        : Server(mysql::errors(), std::make_shared<sql::Watchdog>(engine),
                 {{o.socket.empty() ? o.host : "", o.port}}),
          options(std::move(o)) {}
};

}  // namespace holdfast::mysql
