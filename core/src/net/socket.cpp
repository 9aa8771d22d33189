#include "holdfast/spi/net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/net/gate.hpp"

namespace holdfast::spi::net {

int open_socket(const tcp& protocol) noexcept {
    const int fd = ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fd;
    const auto set = [fd](int level, int option, int value) {
        ::setsockopt(fd, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 6);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    return fd;
}

int connect_error(int fd) noexcept {
    int failed = 0;
    socklen_t size = sizeof failed;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 ? failed : errno;
}

asio::awaitable<Answer<tcp::endpoint>> connect(tcp::socket& socket,
                                               const std::vector<tcp::endpoint>& all,
                                               boot_clock::time_point deadline) {
    const auto parts = static_cast<int>(std::max<std::size_t>(all.size(), 1));
    const auto share = (deadline - boot_clock::now()) / parts;
    std::string said;
    for (const tcp::endpoint& e : all) {
        error_code failed;
        error_code ignored;
        socket.close(ignored);
        // Asio's open() would leave a moment in which a program that is started inherits it.
        const int fd = open_socket(e.protocol());
        if (fd < 0) {
            failed = error_code(errno, boost::system::system_category());
        } else {
            socket.assign(e.protocol(), fd, failed);
            if (failed) ::close(fd);
        }
        if (!failed) {
            // Null as soon as this address has had its turn: the timer may be due at that moment.
            const auto trying = std::make_shared<tcp::socket*>(&socket);
            asio::steady_timer patience(socket.get_executor(), steady(boot_clock::now() + share));
            if (&e != &all.back())
                patience.async_wait([trying](error_code stopped) {
                    error_code none;
                    if (!stopped && *trying != nullptr) (*trying)->cancel(none);
                });
            auto token = asio::redirect_error(asio::use_awaitable, failed);
            co_await socket.async_connect(e, token);
            *trying = nullptr;
        }
        if (!failed) co_return e;
        const bool aborted = failed == asio::error::operation_aborted;
        said += (said.empty() ? "" : "; ") + text_of(Endpoint{e.address().to_string(), e.port()}) +
                ": " + (aborted ? "no answer" : failed.message());
        if (aborted && !socket.is_open()) break;
    }
    co_return Failure(asio::error::host_unreachable, std::move(said));
}

}  // namespace holdfast::spi::net
