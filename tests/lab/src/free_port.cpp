// A reservation is an abstract UNIX socket named after the port: the kernel lets one process have
// it, gives it back when the process dies, and keeps it apart per network namespace, as it does
// ports. No lock file is ever left behind.
#include "holdfast/lab/free_port.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab {
namespace {

constexpr unsigned lowest = 15000;
constexpr unsigned highest = 31999;

// Default ports of well-known servers within the range above.
constexpr std::array<unsigned, 10> taken_by_custom = {15672, 16379, 16380, 19092, 25672,
                                                      26257, 26379, 27017, 27018, 28015};

bool is_ephemeral(unsigned port) {
    static const std::pair<unsigned, unsigned> range = [] {
        std::pair<unsigned, unsigned> read{32768, 60999};
        std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> read.first >> read.second;
        return read;
    }();
    // On a machine whose whole range is ephemeral there is nothing to avoid.
    if (range.first <= lowest && range.second >= highest) {
        return false;
    }
    return port >= range.first && port <= range.second;
}

int reserve(unsigned port) {
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        throw LabError("cannot open a socket to reserve a port");
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("holdfast-lab-port-{}", port);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        ::close(fd);
        return -1;
    }
    return fd;
}

bool can_listen(unsigned port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool ok = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::listen(fd, 1) == 0;
    ::close(fd);
    return ok;
}

}  // namespace

Port free_port() {
    std::random_device random;
    const unsigned count = highest - lowest + 1;
    const unsigned first = random() % count;
    for (unsigned step = 0; step < count; ++step) {
        const unsigned port = lowest + (first + step) % count;
        if (is_ephemeral(port) || std::find(taken_by_custom.begin(), taken_by_custom.end(), port) !=
                                      taken_by_custom.end()) {
            continue;
        }
        const int reservation = reserve(port);
        if (reservation < 0) {
            continue;
        }
        if (can_listen(port)) {
            return Port(static_cast<std::uint16_t>(port), reservation);
        }
        ::close(reservation);
    }
    throw LabError("no free loopback port is left");
}

Port::Port(Port&& other) noexcept
    : number_(std::exchange(other.number_, std::uint16_t{0})),
      reservation_(std::exchange(other.reservation_, -1)) {}

Port& Port::operator=(Port&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(reservation_, other.reservation_);
    return *this;
}

Port::~Port() {
    if (reservation_ >= 0) {
        ::close(reservation_);
    }
}

}  // namespace holdfast::lab
