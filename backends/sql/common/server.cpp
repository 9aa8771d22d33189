#include "server.hpp"

#include <arpa/inet.h>

#include <boost/asio/ip/address.hpp>

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

bool on_this_machine(const std::string& address) {
    if (address.empty()) return true;
    error_code ec;
    const auto ip = boost::asio::ip::make_address(address, ec);
    return !ec && (ip.is_loopback() ||
                   (ip.is_v6() && ip.to_v6().is_v4_mapped() &&
                    boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, ip.to_v6())
                        .is_loopback()));
}

spi::Answer<std::vector<std::string>> Server::addresses(
    const std::string& host, std::optional<boot_clock::time_point> look_up) {
    if (is_address(host)) return std::vector<std::string>{host};
    const std::string nowhere = "no address for " + host;
    std::vector<std::string> known;
    if (auto last = reached(); !last.empty()) known.push_back(std::move(last));
    if (!look_up && !known.empty()) return known;
    if (!look_up) return spi::Failure(errors.make(Error::unresolved), nowhere);
    if (!known.empty()) look_up = std::min(*look_up, boot_clock::now() + patience_with_names);
    const auto found = names.wait_for(host, *look_up);
    if (!found && !known.empty()) return known;
    if (!found)
        return spi::Failure(errors.make(Error::unresolved),
                            nowhere + ": " + spi::HostNames::words(found.error()));
    std::vector<std::string> out;
    for (const auto& address : *found)
        out.push_back(address.to_string());
    return out;
}

Server::InFlight::InFlight(Server& server, Steps& steps, Steps& off)
    : server_(server), steps_(&steps) {
    const std::lock_guard hold(server_.mutex_);
    for (ServerStep* s : std::exchange(steps, {})) {
        const bool wanted = !server_.closing_ && !s->called_off;
        s->asked = s->asked || wanted;
        (wanted ? steps : off).push_back(s);
    }
    server_.in_flight_.push_back(steps_);
}

bool Server::call_off(ServerStep& s) {
    const std::lock_guard hold(mutex_);
    if (!s.asked) s.called_off = true;
    return s.called_off;
}

void refuse(const Server& server, ServerStep& s, const Reply& reply) {
    const error_code why = reply.failed.why;
    if (reply.nothing_done)
        s.refused(reply.failed, spi::Attempt::Failed{why, server.errors.cannot_now(why)});
    else
        s.refused(reply.failed, spi::Attempt::NoAnswer{why});
}

bool went_well(const Server& server, const Reply& reply, const Steps& steps) {
    if (reply.failed)
        for (ServerStep* s : steps)
            refuse(server, *s, reply);
    return !reply.failed;
}

void take(ServerStep& s, const Server& server, spi::Attempt& a) {
    s.tell(a);
    const bool in_doubt = std::holds_alternative<spi::Attempt::NoAnswer>(a.outcome);
    if (in_doubt) {
        OwnerState& p = OwnerState::in(a.place);
        p.touched = true;
        p.ghost = std::max(p.ghost, server.latest_us(a.deadline));
    } else if (std::holds_alternative<spi::Attempt::Granted>(a.outcome)) {
        // Core may find that nobody wants it any more, or that it came too late.
        OwnerState::in(a.place).touched = true;
    }
    if (a.queue && std::holds_alternative<spi::Attempt::Busy>(a.outcome))
        OwnerState::in(a.place).waits = true;
    const bool marked = s.marked || (in_doubt && s.general);
    if (marked != OwnerState::of(a.place).marked) OwnerState::in(a.place).marked = marked;
}

}  // namespace holdfast::sql
