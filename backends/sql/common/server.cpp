#include "server.hpp"

#include <boost/asio/ip/address.hpp>

namespace holdfast::sql {

bool on_this_machine(const std::string& address) {
    if (address.empty()) return true;
    error_code ec;
    const auto ip = boost::asio::ip::make_address(address, ec);
    return !ec && (ip.is_loopback() ||
                   (ip.is_v6() && ip.to_v6().is_v4_mapped() &&
                    boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, ip.to_v6())
                        .is_loopback()));
}

void Server::moved(const Destination& left) {
    if (const auto here = hosts.here()) reports.moved(hosts.words(left), hosts.words(*here));
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

void keep_out(const Server& server, const Steps& released,
              const std::function<void(const Steps&)>& withdraw) {
    std::vector<ServerStep> leaving;
    const auto now = server.server_us(boot_clock::now());
    for (const ServerStep* s : released)
        if (s->done && !s->error && s->ghost > now) leaving.push_back(*s);
    Steps all;
    for (ServerStep& s : leaving) {
        s.kind = Step::Kind::withdraw;
        s.open_again();
        all.push_back(&s);
    }
    if (!all.empty()) withdraw(all);
}

}  // namespace holdfast::sql
