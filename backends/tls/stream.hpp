// TLS over a connected socket, with OpenSSL, for backends whose client library has none.
#pragma once
#include <openssl/ssl.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <string>

#include "options.hpp"

namespace holdfast::tls {

namespace asio = boost::asio;
using Context = asio::ssl::context;
using Stream = asio::ssl::stream<asio::ip::tcp::socket&>;

/// Null without TLS. Throws boost::system::system_error when a certificate file cannot be used.
inline std::unique_ptr<Context> make_context(const Options& o) {
    if (!o.on) return nullptr;
    auto c = std::make_unique<Context>(Context::tls_client);
    c->set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 |
                   Context::no_tlsv1 | Context::no_tlsv1_1);
    c->set_verify_mode(o.verify ? asio::ssl::verify_peer : asio::ssl::verify_none);
    const auto use = [](const std::string& file, const char* what, auto load) {
        error_code ec;
        load(ec);
        if (ec)
            throw boost::system::system_error(
                make_error_code(errc::bad_config),
                std::string(what) + ": " + file + " cannot be used (" + ec.message() + ")");
    };
    if (o.ca_file.empty()) {
        error_code ignored;
        c->set_default_verify_paths(ignored);
    } else {
        use(o.ca_file, "tls_ca_file", [&](error_code& ec) { c->load_verify_file(o.ca_file, ec); });
    }
    if (!o.cert_file.empty()) {
        use(o.cert_file, "tls_cert_file",
            [&](error_code& ec) { c->use_certificate_chain_file(o.cert_file, ec); });
        use(o.key_file, "tls_key_file",
            [&](error_code& ec) { c->use_private_key_file(o.key_file, Context::pem, ec); });
    }
    return c;
}

/// The client's handshake with `host`. Checks the certificate if the context demands it. Has no
/// deadline: closing the socket ends it. `detail` receives the reason of a failure.
inline asio::awaitable<error_code> shake_hands(Stream& stream, const std::string& host,
                                               std::string* detail) {
    const asio::ssl::host_name_verification same_name(host);
    SSL* const native = stream.native_handle();
    if ((SSL_get_verify_mode(native) & SSL_VERIFY_PEER) != 0) stream.set_verify_callback(same_name);
    error_code numeric;
    asio::ip::make_address(host, numeric);
    if (numeric) {
        // SSL_set_tlsext_host_name without its old-style cast.
        std::string name = host;
        SSL_ctrl(native, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    }
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    co_await stream.async_handshake(asio::ssl::stream_base::client, token);
    if (!ec) co_return ec;
    const long verified = SSL_get_verify_result(native);
    // A failed check of the host name leaves no reason of its own.
    const bool refused =
        ec.category() == asio::error::get_ssl_category() &&
        ERR_GET_REASON(static_cast<unsigned long>(ec.value())) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    if (refused && (verified == X509_V_OK || verified == X509_V_ERR_UNSPECIFIED))
        *detail = "the certificate is not for the host " + host;
    else
        *detail = refused ? X509_verify_cert_error_string(verified) : ec.message();
    co_return ec;
}

}  // namespace holdfast::tls
