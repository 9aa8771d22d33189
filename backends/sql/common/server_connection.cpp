#include "server_connection.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "holdfast/spi/net/connect_time.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::sql {
namespace {

// A server may have ended a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};
/// How long callers' threads do not connect after the server had no connection left, or no time for
/// one.
constexpr std::chrono::seconds crowded_for{10};
/// How many times the usual time a connect may take in the end.
constexpr int most_patience = 5;

/// Why none of the hosts serves: the code of the one of which there is most hope, and the words of
/// all.
class Refusals {
public:
    explicit Refusals(const Server& server) : server_(server) {}
    void add(std::size_t host, spi::Failure failed) {
        const int hope = server_.errors.cannot_now(failed.why) ? 2
                         : failed.why == errc::unavailable     ? 1
                                                               : 0;
        if (hope > hope_) why_ = failed.why;
        hope_ = std::max(hope_, hope);
        if (server_.hosts.size() > 1) {
            if (!words_.empty()) words_ += "; ";
            words_ += spi::text_of(server_.hosts[host]) + ": ";
            if (failed.detail.empty()) failed.detail = failed.why.message();
        }
        words_ += failed.detail;
    }
    spi::Failure all() { return {why_, std::move(words_)}; }

private:
    const Server& server_;
    int hope_ = -1;
    error_code why_;
    std::string words_;
};

}  // namespace

ServerConnection::ServerConnection(Server& server, Resolve resolve)
    : server_(server), resolve_(resolve), guard_(server.watchdog, resolve == Resolve::no) {}

void ServerConnection::close() noexcept {
    if (connected()) server_.hosts.doubt();
    guard_.watch(-1);
    drop();
}

spi::Answer<std::string> ServerConnection::connect_host(
    std::size_t host, Server::Opening& opening, const Limits& limits,
    std::optional<boot_clock::time_point> look_up) {
    if (look_up) look_up = std::min(*look_up, limits.silence);
    const auto where = server_.hosts.addresses(host, look_up);
    if (!where) {
        if (look_up && boot_clock::now() >= *look_up) server_.hosts.silent(host);
        return where.error();
    }
    spi::Failure last(server_.errors.make(Error::unresolved));
    for (std::size_t i = 0; i < where->size(); ++i) {
        // Each address gets its share of the time, so that a dead one does not take all of it.
        const auto left = static_cast<std::int64_t>(where->size() - i);
        const auto now = boot_clock::now();
        const Limits share{now + (limits.silence - now) / left, now + (limits.end - now) / left};
        last = connect_to(server_.hosts[host], (*where)[i], opening, share);
        if (!last) return (*where)[i];
    }
    return last;
}

spi::Failure ServerConnection::try_host(std::size_t host, Server::Opening& opening,
                                        const Limits& limits,
                                        std::optional<boot_clock::time_point> look_up,
                                        unsigned began) {
    spi::Failure failed;
    const auto start = boot_clock::now();
    try {
        auto address = connect_host(host, opening, limits, look_up);
        if (!address) {
            if (address.error().why == server_.errors.make(Error::too_many)) {
                // The engine's connections matter more than those that save callers a thread
                // switch.
                server_.crowd(boot_clock::now() + crowded_for);
                if (resolve_ == Resolve::yes) server_.watchdog->end_spares();
            }
            return std::move(address).error();
        }
        failed = introduce(limits.end);
        if (!failed && !connected()) failed = server_.errors.make(Error::no_answer);
        if (failed.why == server_.errors.make(Error::no_answer)) opening.slow();
        if (failed) return failed;
        const auto reached = server_.hosts.reach({host, *address, incarnation()}, began);
        if (!reached)
            return {server_.errors.make(Error::old_primary),
                    "this client has found another one meanwhile"};
        generation_ = reached->generation;
        slow_ = boot_clock::now() - start > spi::net::least_connect_time;
        if (reached->left) server_.moved(*reached->left);
    } catch (const std::bad_alloc&) {  // says nothing about the server
        close();
        throw;
    } catch (const std::exception& e) {  // a number that is none, for instance
        failed = {server_.errors.make(connected() ? Error::strange_answer : Error::closed),
                  first_words(e.what())};
    }
    return failed;
}

spi::Failure ServerConnection::find(Server::Opening& opening, boot_clock::time_point until,
                                    std::optional<boot_clock::time_point> look_up) {
    const unsigned began = server_.hosts.generation();
    const auto here = server_.hosts.here();
    auto order = server_.hosts.order();
    // A caller's own thread does not search: it follows the engine.
    if (resolve_ == Resolve::no && here) {
        if (order.front() != here->host)
            return {server_.errors.make(Error::refused), "another host is looked for"};
        order = {here->host};
    }
    Refusals refusals(server_);
    // The same for each, also for the last: what the others have said should be known in time.
    const auto share = (until - boot_clock::now()) / static_cast<std::int64_t>(order.size());
    for (const std::size_t host : order) {
        const Limits limits{std::min(boot_clock::now() + share, until), until};
        auto failed = try_host(host, opening, limits, look_up, began);
        if (!failed) return {};
        close();
        // A caller's own thread has too little time to judge a host. Its next call begins anew:
        // with many callers a busy server would only begin sessions for which nobody waits any
        // more.
        const bool silent = failed.why == server_.errors.make(Error::no_answer);
        if (silent && resolve_ == Resolve::yes) server_.hosts.silent(host);
        if (silent && resolve_ == Resolve::no) server_.crowd(boot_clock::now() + crowded_for);
        // It is there, and where the leases are: what it refuses, no other server should give.
        if (here && here->host == host && !server_.errors.ask_elsewhere(failed.why)) return failed;
        refusals.add(host, std::move(failed));
    }
    auto failed = refusals.all();
    const bool waits = failed.why == server_.errors.make(Error::read_only) ||
                       failed.why == server_.errors.make(Error::old_primary);
    // A caller that may wait goes on with it, and nothing else would say why.
    if (waits) server_.reports.warn(failed.why.message() + ": " + failed.detail);
    return failed;
}

spi::Failure ServerConnection::open(boot_clock::time_point deadline) {
    const auto now = boot_clock::now();
    const bool unchecked = now - used_ > idle_unchecked;
    if (connected() && unchecked && (guard_.ended() || spoken_to())) close();
    if (connected() && !current()) close();
    used_ = now;
    const bool spare = resolve_ == Resolve::no;
    if (connected()) {
        if (!spare) server_.hosts.trust();
        return {};
    }
    if (spare && now < server_.crowded_until())
        return {server_.errors.make(Error::too_many), "the server has no connection to spare"};
    if (spare)
        if (auto why = no_spare()) return why;
    Server::Opening opening(server_);
    // A caller's own thread has no time beyond its caller's. With the same time again and again a
    // busy server would never come to the end of a session's beginning, and all its work would be
    // for nothing.
    const auto until = spare ? deadline : spi::net::connect_until(deadline, patience_);
    const auto look_up = spare ? std::optional<boot_clock::time_point>() : deadline;
    auto failed = find(opening, until, look_up);
    patience_ = failed && opening.was_slow() ? std::min(patience_ + 1, most_patience) : 1;
    if (!failed && !spare) server_.hosts.trust();
    const bool unanswered = !failed || failed.why == server_.errors.make(Error::no_answer);
    if (unanswered && opening.answered() && boot_clock::now() >= deadline)
        failed.why = server_.errors.make(Error::connecting);
    return failed;
}

bool ServerConnection::overtaken(Reply& reply) {
    if (reply.failed || current()) return false;
    reply.failed = server_.errors.make(Error::no_answer);
    reply.nothing_done = false;
    close();
    return true;
}

std::string first_words(std::string_view message) {
    constexpr std::size_t longest = 200;
    return std::string(message.substr(0, std::min(message.find('\n'), longest)));
}

}  // namespace holdfast::sql
