// Where a server is: asked before each connection of the engine.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "holdfast/spi/failure.hpp"
#include "holdfast/spi/host_names.hpp"

namespace holdfast::resp {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

struct Server;

struct Location {
    std::vector<tcp::endpoint> endpoints;
    std::string host;   ///< for the certificate
    std::string text;   ///< for people
    unsigned move = 0;  ///< Server::moves() when it was found
};

/// Engine thread only.
class Where {
public:
    virtual ~Where() = default;
    /// Ends at `deadline`.
    virtual asio::awaitable<spi::Answer<Location>> find(boot_clock::time_point deadline) = 0;
    /// For a caller whose time ends before find() does.
    virtual std::string unanswered() const = 0;
    /// What it means that a place that find() has returned cannot be used.
    virtual spi::Failure judged(spi::Failure failed) const { return failed; }
};

/// The host of a URL, which is looked up each time.
class NamedHost final : public Where {
public:
    /// The server outlives it.
    explicit NamedHost(const Server& server) : server_(server) {}
    asio::awaitable<spi::Answer<Location>> find(boot_clock::time_point deadline) override;
    std::string unanswered() const override;

private:
    spi::HostNames names_;
    const Server& server_;
};

/// The endpoints of a host, by `names`; ends a little before `deadline`, so that the error can name
/// the host.
asio::awaitable<spi::Answer<std::vector<tcp::endpoint>>> endpoints_of(
    spi::HostNames& names, std::string host, std::uint16_t port, boot_clock::time_point deadline);

}  // namespace holdfast::resp
