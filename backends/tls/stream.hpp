// TLS over a connected socket of Asio's, for the engine's connections.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "context.hpp"

namespace holdfast::tls {

using Stream = asio::ssl::stream<asio::ip::tcp::socket&>;

/// For people: why the connection to `host` broke, if TLS was the cause; else empty.
inline std::string explain(Stream& stream, const error_code& ec, const Context& context,
                           const std::string& host) {
    const bool said = ec.category() == asio::error::get_ssl_category();
    // Whatever else ends a session here is the end of the connection.
    return explain(stream.native_handle(), said ? static_cast<unsigned long>(ec.value()) : 0,
                   context.name_at(host));
}

/// Makes `stream` over the connected `socket`, and the client's handshake with `host`. Has no
/// deadline: closing the socket ends it. `protocol` is offered by ALPN, if there is one. The error
/// has a text if TLS was the cause; else the connection broke.
inline asio::awaitable<spi::Failure> secure(std::optional<Stream>& stream,
                                            asio::ip::tcp::socket& socket, Context& context,
                                            const std::string& host,
                                            std::string_view protocol = {}) {
    const auto files = context.current();
    stream.emplace(socket, *files);
    SSL* const session = stream->native_handle();
    expect(session, context.name_at(host));
    if (!protocol.empty()) {
        const std::string list = static_cast<char>(protocol.size()) + std::string(protocol);
        SSL_set_alpn_protos(session, reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned>(list.size()));
    }
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    co_await stream->async_handshake(asio::ssl::stream_base::client, token);
    if (!ec) co_return spi::Failure();
    spi::Failure failed(ec, explain(*stream, ec, context, host));
    const std::string more = context.trouble();
    if (!failed.detail.empty() && !more.empty()) failed.detail += "; " + more;
    co_return failed;
}

/// Reads or writes over TLS if there is a stream, else in clear.
template <class Token>
auto read_some(std::optional<Stream>& secure, asio::ip::tcp::socket& clear, asio::mutable_buffer to,
               Token&& token) {
    if (secure) return secure->async_read_some(to, std::forward<Token>(token));
    return clear.async_read_some(to, std::forward<Token>(token));
}
template <class Token>
auto write(std::optional<Stream>& secure, asio::ip::tcp::socket& clear, asio::const_buffer from,
           Token&& token) {
    if (secure) return asio::async_write(*secure, from, std::forward<Token>(token));
    return asio::async_write(clear, from, std::forward<Token>(token));
}

/// Whether the server has chosen this protocol by ALPN.
inline bool speaks(Stream& stream, std::string_view protocol) {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(stream.native_handle(), &name, &size);
    return std::string_view(reinterpret_cast<const char*>(name), size) == protocol;
}

}  // namespace holdfast::tls
