// What the command needs to know of a kind of server. A further kind is one more implementation and
// one more line in the table of kinds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::lab::cli {

struct ServerOptions {
    bool tls = false;
    bool append_only = false;
    std::string password;
    std::vector<std::string> config;
};

/// One running server of any kind.
class Server {
public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    virtual ~Server() = default;

    virtual std::string url(std::uint16_t port) = 0;  ///< as seen through `port`
    virtual std::uint16_t port() = 0;
    virtual std::vector<std::string> notes() = 0;  ///< lines worth knowing, for standard error
    virtual void pause() = 0;
    virtual void resume() = 0;
    virtual void kill() = 0;
    virtual void restart(bool fresh) = 0;
};

struct ServerKind {
    std::string_view name;
    std::string_view what;  ///< for --help
    std::function<std::unique_ptr<Server>(const ServerOptions&)> start;
};

/// All kinds the command can start.
const std::vector<ServerKind>& server_kinds();

}  // namespace holdfast::lab::cli
