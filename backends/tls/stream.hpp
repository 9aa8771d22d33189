// TLS over a connected socket, with OpenSSL, for backends whose client library has none.
#pragma once
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options.hpp"

namespace holdfast::tls {

namespace asio = boost::asio;
using Stream = asio::ssl::stream<asio::ip::tcp::socket&>;

/// The certificates and the key of a client's connections. A file that has changed is read again
/// for the next connection, so that a rotated one counts without a restart. One thread at a time.
class Context {
public:
    using Native = asio::ssl::context;

    /// Throws boost::system::system_error when a file cannot be used.
    explicit Context(Options o) : options_(std::move(o)) { read(); }

    /// For a new connection, which may outlive it. As long as a file cannot be used, as in the
    /// middle of a rotation, those that were read before.
    Native& current() {
        try {
            if (!settled_ || stamps() != read_) read();
            trouble_.clear();
        } catch (const boost::system::system_error& e) {
            trouble_ = e.what();
        }
        return *native_;
    }
    /// Why current() is not what the files are now; empty: it is.
    const std::string& trouble() const noexcept { return trouble_; }

private:
    using Stamp = std::array<std::int64_t, 5>;

    std::vector<Stamp> stamps() const {
        std::string authorities = options_.ca_file;
        if (authorities.empty()) {
            const char* const named = ::secure_getenv(X509_get_default_cert_file_env());
            authorities = named != nullptr ? named : X509_get_default_cert_file();
        }
        std::vector<Stamp> all;
        for (const std::string& file : {authorities, options_.cert_file, options_.key_file}) {
            struct stat s {};
            if (!file.empty() && ::stat(file.c_str(), &s) == 0)
                all.push_back({static_cast<std::int64_t>(s.st_dev),
                               static_cast<std::int64_t>(s.st_ino), s.st_size,
                               since_epoch(s.st_mtim), since_epoch(s.st_ctim)});
            else
                all.emplace_back();
        }
        return all;
    }

    static std::int64_t since_epoch(const timespec& t) noexcept {
        return t.tv_sec * std::int64_t{1000000000} + t.tv_nsec;
    }

    void read() {
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        auto before = stamps();
        native_ = load(options_);
        // The time of a file is coarse, so a later change within the same tick would not show.
        settled_ = std::all_of(before.begin(), before.end(), [&](const Stamp& s) {
            return s.back() + std::int64_t{1000000000} < since_epoch(now);
        });
        read_ = std::move(before);
    }

    static std::unique_ptr<Native> load(const Options& o) {
        auto c = std::make_unique<Native>(Native::tls_client);
        c->set_options(Native::default_workarounds | Native::no_sslv2 | Native::no_sslv3 |
                       Native::no_tlsv1 | Native::no_tlsv1_1);
        c->set_verify_mode(o.verify ? asio::ssl::verify_peer : asio::ssl::verify_none);
        // Without a callback OpenSSL asks on the terminal, or reads standard input.
        const auto asked = std::make_shared<bool>(false);
        c->set_password_callback([asked](std::size_t, Native::password_purpose) {
            *asked = true;
            return std::string();
        });
        const auto use = [&](const std::string& file, const char* what, auto read_file) {
            error_code ec;
            read_file(ec);
            if (!ec) return;
            const std::string why =
                *asked ? "it is encrypted; use a key without a pass phrase, mode 600"
                       : ec.message();
            throw boost::system::system_error(
                make_error_code(errc::bad_config),
                std::string(what) + ": " + file + " cannot be used (" + why + ")");
        };
        if (o.ca_file.empty()) {
            error_code ignored;
            c->set_default_verify_paths(ignored);
        } else {
            use(o.ca_file, "tls_ca_file",
                [&](error_code& ec) { c->load_verify_file(o.ca_file, ec); });
        }
        if (!o.cert_file.empty()) {
            use(o.cert_file, "tls_cert_file",
                [&](error_code& ec) { c->use_certificate_chain_file(o.cert_file, ec); });
            use(o.key_file, "tls_key_file",
                [&](error_code& ec) { c->use_private_key_file(o.key_file, Native::pem, ec); });
        }
        return c;
    }

    const Options options_;
    std::unique_ptr<Native> native_;
    std::vector<Stamp> read_;
    bool settled_ = false;
    std::string trouble_;
};

/// Null without TLS. Throws as Context does.
inline std::unique_ptr<Context> make_context(const Options& o) {
    return o.on ? std::make_unique<Context>(o) : nullptr;
}

/// The client's handshake with `host`. Checks the certificate if the context demands it. Has no
/// deadline: closing the socket ends it.
inline asio::awaitable<spi::Failure> shake_hands(Stream& stream, const std::string& host) {
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
    if (!ec) co_return spi::Failure();
    const long verified = SSL_get_verify_result(native);
    // A failed check of the host name leaves no reason of its own.
    const bool refused =
        ec.category() == asio::error::get_ssl_category() &&
        ERR_GET_REASON(static_cast<unsigned long>(ec.value())) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    if (refused && (verified == X509_V_OK || verified == X509_V_ERR_UNSPECIFIED))
        co_return spi::Failure(ec, "the certificate is not for the host " + host);
    co_return spi::Failure(ec, refused ? X509_verify_cert_error_string(verified) : ec.message());
}

/// Makes `stream` over the connected `socket` and shakes hands with `host`, as above. `protocol` is
/// offered by ALPN, if there is one.
inline asio::awaitable<spi::Failure> secure(std::optional<Stream>& stream,
                                            asio::ip::tcp::socket& socket, Context& context,
                                            const std::string& host,
                                            std::string_view protocol = {}) {
    stream.emplace(socket, context.current());
    if (!protocol.empty()) {
        const std::string list = static_cast<char>(protocol.size()) + std::string(protocol);
        SSL_set_alpn_protos(stream->native_handle(),
                            reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned>(list.size()));
    }
    auto shaking = shake_hands(*stream, host);
    spi::Failure failed = co_await std::move(shaking);
    if (failed && !context.trouble().empty()) failed.detail += "; " + context.trouble();
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
