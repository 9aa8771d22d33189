#include "link.hpp"

// A false alarm of g++ 12 about coroutine frames, whose memory Boost allocates in its own way.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

#include "errors.hpp"
#include "handshake.hpp"

namespace holdfast::redis {
namespace {

constexpr std::size_t most_buffered = 8U << 20U;  // operators' lists are long; grants are short

/// Closes the link at the deadline, unless it is destroyed before.
class Watchdog {
public:
    Watchdog(const asio::any_io_executor& e, boot_clock::time_point deadline,
             const std::shared_ptr<Link>& link)
        : timer_(e, steady(deadline)), fired_(std::make_shared<bool>(false)) {
        timer_.async_wait([weak = std::weak_ptr<Link>(link), fired = fired_](error_code ec) {
            const auto alive = weak.lock();
            if (ec || !alive) return;
            *fired = true;
            alive->close();
        });
    }
    bool fired() const noexcept { return *fired_; }

private:
    asio::steady_timer timer_;
    std::shared_ptr<bool> fired_;
};

std::string words(const char* what, const std::string& where) {
    return std::string(what) + " " + where;
}

std::string text_of(const tcp::endpoint& e) {
    const std::string address = e.address().to_string();
    return (e.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(e.port());
}

}  // namespace

std::chrono::steady_clock::time_point steady(boot_clock::time_point t) noexcept {
    if (t == boot_clock::time_point::max()) return std::chrono::steady_clock::time_point::max();
    const auto left = t - boot_clock::now();
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
}

void prepare_socket(int fd) noexcept {
    const auto set = [fd](int level, int option, int value) {
        ::setsockopt(fd, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 6);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::unique_ptr<asio::ssl::context> make_tls(const Options& o) {
    if (!o.tls) return nullptr;
    auto c = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    c->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                   asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                   asio::ssl::context::no_tlsv1_1);
    if (o.tls_verify) {
        c->set_verify_mode(asio::ssl::verify_peer);
        const std::string host = o.host;
        const asio::ssl::host_name_verification same_name(host);
        c->set_verify_callback(same_name);
    } else {
        c->set_verify_mode(asio::ssl::verify_none);
    }
    const auto use = [](const std::string& file, const char* what, auto load) {
        error_code ec;
        load(ec);
        if (ec)
            throw boost::system::system_error(
                make_error_code(errc::bad_config),
                std::string(what) + ": " + file + " cannot be used (" + ec.message() + ")");
    };
    if (o.tls_ca_file.empty()) {
        error_code ignored;
        c->set_default_verify_paths(ignored);
    } else {
        use(o.tls_ca_file, "tls_ca_file",
            [&](error_code& ec) { c->load_verify_file(o.tls_ca_file, ec); });
    }
    if (!o.tls_cert_file.empty()) {
        use(o.tls_cert_file, "tls_cert_file",
            [&](error_code& ec) { c->use_certificate_chain_file(o.tls_cert_file, ec); });
        use(o.tls_key_file, "tls_key_file", [&](error_code& ec) {
            c->use_private_key_file(o.tls_key_file, asio::ssl::context::pem, ec);
        });
    }
    return c;
}

Link::Link(asio::any_io_executor executor, std::shared_ptr<Shared> shared, asio::ssl::context* tls)
    : executor_(std::move(executor)),
      shared_(std::move(shared)),
      context_(tls),
      socket_(executor_),
      codec_(most_buffered) {}

void Link::close() noexcept {
    closed_ = true;
    error_code ignored;
    socket_.close(ignored);
}

asio::awaitable<error_code> Link::open(boot_clock::time_point deadline, std::string* detail) {
    const auto self = shared_from_this();
    const Watchdog watchdog(executor_, deadline, self);
    error_code ec = co_await connect(deadline, detail);
    if (!ec && context_ != nullptr) ec = co_await secure(detail);
    if (!ec) ec = co_await introduce(detail);
    if (ec && watchdog.fired()) {
        ec = make(Error::no_answer);
        *detail = words("no answer from", shared_->options.display);
    }
    if (ec) close();
    co_return ec;
}

asio::awaitable<error_code> Link::connect(boot_clock::time_point deadline, std::string* detail) {
    const Options& o = shared_->options;
    std::vector<std::string> hosts{o.host};
    // A little less than all, so that the error can say who did not answer.
    const auto soon = deadline - (deadline - boot_clock::now()) / 10;
    auto looking = shared_->names.look_up(std::move(hosts), soon);
    const auto found = co_await std::move(looking);
    if (!found.front()) {
        *detail = o.host + ": " + spi::HostNames::words(found.front().error());
        co_return make(Error::unresolved);
    }
    std::vector<tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, o.port);
    // A dead address must not use up the time of those after it.
    const auto share =
        (deadline - boot_clock::now()) / static_cast<int>(std::max<std::size_t>(all.size(), 1));
    detail->clear();
    for (const tcp::endpoint& e : all) {
        if (closed_) break;
        error_code failed;
        error_code ignored;
        socket_.close(ignored);
        // Asio's open() would leave a moment in which a program that is started inherits it.
        const int fd = ::socket(e.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            failed = error_code(errno, boost::system::system_category());
        } else {
            socket_.assign(e.protocol(), fd, failed);
            if (failed) ::close(fd);
        }
        if (!failed) {
            prepare_socket(fd);
            asio::steady_timer patience(executor_, steady(boot_clock::now() + share));
            const bool last = &e == &all.back();
            if (!last)
                patience.async_wait([self = shared_from_this()](error_code stopped) {
                    error_code none;
                    if (!stopped) self->socket_.cancel(none);
                });
            auto token = asio::redirect_error(asio::use_awaitable, failed);
            co_await socket_.async_connect(e, token);
        }
        if (!failed) {
            shared_->reached(e);
            co_return error_code();
        }
        const std::string why =
            failed == asio::error::operation_aborted ? "no answer" : failed.message();
        *detail += (detail->empty() ? "" : "; ") + text_of(e) + ": " + why;
    }
    co_return make(Error::refused);
}

asio::awaitable<error_code> Link::secure(std::string* detail) {
    const std::string& host = shared_->options.host;
    tls_.emplace(socket_, *context_);
    error_code numeric;
    asio::ip::make_address(host, numeric);
    if (numeric) {
        // SSL_set_tlsext_host_name without its old-style cast.
        std::string name = host;
        SSL_ctrl(tls_->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 name.data());
    }
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    co_await tls_->async_handshake(asio::ssl::stream_base::client, token);
    if (!ec) co_return ec;
    const long verified = SSL_get_verify_result(tls_->native_handle());
    // The check of the host name leaves no reason of its own.
    const bool refused =
        ec.category() == asio::error::get_ssl_category() &&
        ERR_GET_REASON(static_cast<unsigned long>(ec.value())) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    if (refused && (verified == X509_V_OK || verified == X509_V_ERR_UNSPECIFIED))
        *detail = "the certificate is not for the host " + host;
    else
        *detail = refused ? X509_verify_cert_error_string(verified) : ec.message();
    co_return make(Error::tls);
}

asio::awaitable<error_code> Link::introduce(std::string* detail) {
    Handshake handshake;
    std::string bytes;
    error_code ec = handshake.begin(*shared_, bytes, *detail);
    if (ec) co_return ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    const auto out = asio::buffer(bytes);
    if (tls_)
        co_await asio::async_write(*tls_, out, token);
    else
        co_await asio::async_write(socket_, out, token);
    std::array<char, 4096> in{};
    const auto room = asio::buffer(in);
    while (!ec && handshake.left() > 0) {
        std::size_t n = 0;
        if (tls_)
            n = co_await tls_->async_read_some(room, token);
        else
            n = co_await socket_.async_read_some(room, token);
        if (ec) break;
        if (!codec_.feed({in.data(), n})) co_return make(Error::protocol);
        for (auto next = codec_.next(); next != Codec::Next::more; next = codec_.next()) {
            if (next == Codec::Next::broken || handshake.left() == 0) {
                *detail = words("no Redis server at", shared_->options.display);
                co_return make(Error::protocol);
            }
            const error_code refused = handshake.take(codec_.reply(), *shared_, *detail);
            if (refused) co_return refused;
        }
    }
    if (ec) {
        *detail = shared_->options.display + ": " + ec.message();
        co_return make(Error::closed);
    }
    co_return error_code();
}

}  // namespace holdfast::redis
