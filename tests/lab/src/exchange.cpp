#include "exchange.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace holdfast::lab::detail {

std::string exchange(const std::string& host, std::uint16_t port, const std::string& question,
                     std::chrono::nanoseconds cap) {
    const auto end = std::chrono::steady_clock::now() + cap;
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return {};
    }
    const auto wait = [&](short what) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        pollfd p{fd, what, 0};
        return left.count() > 0 && ::poll(&p, 1, static_cast<int>(left.count())) == 1;
    };
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    std::string answer;
    sockaddr generic{};
    static_assert(sizeof generic == sizeof address);
    std::memcpy(&generic, &address, sizeof generic);
    if (::connect(fd, &generic, sizeof generic) == 0 || wait(POLLOUT)) {
        if (::send(fd, question.data(), question.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(question.size())) {
            std::array<char, 4096> block{};
            while (wait(POLLIN)) {
                const auto n = ::recv(fd, block.data(), block.size(), 0);
                if (n <= 0) {
                    break;
                }
                answer.append(block.data(), static_cast<std::size_t>(n));
            }
        }
    }
    ::close(fd);
    return answer;
}

}  // namespace holdfast::lab::detail
