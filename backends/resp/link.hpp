// One connection of the engine to the server: resolves, connects, secures, greets.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "../tls/stream.hpp"
#include "codec.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "server.hpp"

namespace holdfast::resp {

/// Plain TCP or TLS. Engine thread only. Once closed it stays closed; close() ends everything under
/// way on it.
class Link : public std::enable_shared_from_this<Link> {
public:
    Link(asio::any_io_executor executor, std::shared_ptr<Server> server, tls::Context* tls);

    /// Resolves names and tries all addresses; ends at `deadline`.
    asio::awaitable<spi::Failure> open(boot_clock::time_point deadline);
    void close() noexcept;

    template <class Handler>
    auto read_some(asio::mutable_buffer to, Handler&& h) {
        return tls::read_some(tls_, socket_, to, std::forward<Handler>(h));
    }
    template <class Handler>
    auto write(asio::const_buffer from, Handler&& h) {
        return tls::write(tls_, socket_, from, std::forward<Handler>(h));
    }
    Codec& codec() noexcept { return codec_; }
    /// Why it is not open yet, as text: for a caller whose time ends before open() does.
    std::string unanswered() const;
    /// Closes it if the server has moved since it was found.
    void leave() noexcept;

private:
    asio::awaitable<spi::Failure> connect(boot_clock::time_point deadline);
    asio::awaitable<spi::Failure> secure();
    asio::awaitable<spi::Failure> introduce();

    asio::any_io_executor executor_;
    std::shared_ptr<Server> server_;
    tls::Context* context_;
    tcp::socket socket_;
    std::optional<tls::Stream> tls_;
    Codec codec_;
    Location place_;
    tcp::endpoint endpoint_;
    bool closed_ = false, finding_ = true, shaking_hands_ = false;
};

}  // namespace holdfast::resp
