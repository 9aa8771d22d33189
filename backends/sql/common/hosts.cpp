#include "hosts.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::sql {
namespace {

/// For how long a look-up may delay a caller that knows an address already.
constexpr milliseconds patience_with_names{750};

}  // namespace

bool is_address(const std::string& host) {
    in6_addr any;
    return ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

std::string Hosts::words(const Destination& place) const {
    const spi::Endpoint& host = hosts_[place.host];
    std::string text = host.host.empty() ? "the Unix socket" : spi::text_of(host, place.address);
    if (!place.incarnation.empty()) text += ", " + place.incarnation;
    return text;
}

std::vector<std::size_t> Hosts::order() const {
    const std::lock_guard hold(mutex_);
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
        all.push_back((first_ + i) % hosts_.size());
    return all;
}

spi::Answer<std::vector<std::string>> Hosts::addresses(
    std::size_t at, std::optional<boot_clock::time_point> look_up) {
    const std::string& host = hosts_[at].host;
    if (host.empty() || is_address(host)) return std::vector<std::string>{host};
    const std::string nowhere = "no address for " + host;
    std::vector<std::string> known;
    {
        const std::lock_guard hold(mutex_);
        if (const auto last = reached_.find(at); last != reached_.end())
            known.push_back(last->second);
    }
    if (!look_up && !known.empty() && !doubted_) return known;
    if (!look_up) return spi::Failure(errors_.make(Error::unresolved), nowhere);
    if (!known.empty()) look_up = std::min(*look_up, boot_clock::now() + patience_with_names);
    const auto found = names_.wait_for(host, *look_up);
    if (!found && !known.empty()) return known;
    if (!found)
        return spi::Failure(errors_.make(Error::unresolved),
                            nowhere + ": " + spi::HostNames::words(found.error()));
    std::vector<std::string> all;
    for (const auto& address : *found)
        all.push_back(address.to_string());
    // What a connection of this client leads to goes first, as long as it is still the name's.
    const auto last = known.empty() ? all.end() : std::find(all.begin(), all.end(), known.front());
    if (last != all.end()) std::rotate(all.begin(), last, last + 1);
    return all;
}

std::optional<Destination> Hosts::here() const {
    const std::lock_guard hold(mutex_);
    return here_;
}

std::optional<Hosts::Reached> Hosts::reach(Destination place, unsigned began) {
    const std::lock_guard hold(mutex_);
    const bool same = here_ == place;
    if (began != generation_ && !same) return std::nullopt;
    first_ = place.host;
    reached_[place.host] = place.address;
    Reached reached{generation_, {}};
    if (same) return reached;
    if (here_) {
        reached.left = std::move(here_);
        reached.generation = ++generation_;
    }
    here_ = std::move(place);
    return reached;
}

void Hosts::silent(std::size_t host) {
    const std::lock_guard hold(mutex_);
    if (first_ == host) first_ = (host + 1) % hosts_.size();
}

}  // namespace holdfast::sql
