#include "where.hpp"

#include <algorithm>

#include "errors.hpp"
#include "server.hpp"

namespace holdfast::resp {

asio::awaitable<spi::Answer<std::vector<tcp::endpoint>>> endpoints_of(
    spi::HostNames& names, std::string host, std::uint16_t port, boot_clock::time_point deadline) {
    std::vector<std::string> hosts{host};
    const auto soon = deadline - (deadline - boot_clock::now()) / 10;
    auto looking = names.look_up(std::move(hosts), soon);
    const auto found = co_await std::move(looking);
    if (!found.front())
        co_return spi::Failure(make(Error::unresolved),
                               host + ": " + spi::HostNames::words(found.front().error()));
    std::vector<tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, port);
    co_return all;
}

asio::awaitable<spi::Answer<Location>> NamedHost::find(boot_clock::time_point deadline) {
    const Target& target = server_.target;
    auto looking = endpoints_of(names_, target.host, target.port, deadline);
    auto found = co_await std::move(looking);
    if (!found) co_return found.error();
    Location place;
    place.endpoints = std::move(*found);
    place.host = target.host;
    place.text = target.display;
    place.move = server_.moves();
    // Where this client is goes first, as long as the name still means it.
    if (const auto here = server_.reached()) {
        const auto at = std::find(place.endpoints.begin(), place.endpoints.end(), here->endpoint);
        if (at != place.endpoints.end()) std::rotate(place.endpoints.begin(), at, at + 1);
    }
    co_return place;
}

std::string NamedHost::unanswered() const {
    return server_.target.host + ": " + spi::HostNames::words(asio::error::timed_out);
}

}  // namespace holdfast::resp
