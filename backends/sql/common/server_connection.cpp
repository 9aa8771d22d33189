#include "server_connection.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "holdfast/spi/net/connect_time.hpp"

namespace holdfast::sql {
namespace {

// A server may have ended a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};
/// How long callers' threads do not connect after the server had no connection left.
constexpr std::chrono::seconds crowded_for{10};

}  // namespace

ServerConnection::ServerConnection(Server& server, const std::string& host, Resolve resolve)
    : server_(server),
      host_(host),
      resolve_(resolve),
      guard_(server.watchdog, resolve == Resolve::no) {}

void ServerConnection::close() noexcept {
    guard_.watch(-1);
    drop();
}

spi::Failure ServerConnection::connect_anywhere(Server::Opening& opening,
                                                boot_clock::time_point deadline,
                                                std::optional<boot_clock::time_point> look_up) {
    std::vector<std::string> where(1);  // the Unix socket
    if (!host_.empty()) {
        auto found = server_.addresses(host_, look_up);
        if (!found) return std::move(found).error();
        where = std::move(*found);
    }
    spi::Failure last(server_.errors.make(Error::unresolved));
    for (std::size_t i = 0; i < where.size(); ++i) {
        // Each address gets its share of the time, so that a dead one does not take all of it.
        const auto now = boot_clock::now();
        const auto share = (deadline - now) / static_cast<std::int64_t>(where.size() - i);
        last = connect_to(where[i], opening, now + share);
        if (last) continue;
        server_.reach(where[i]);
        return {};
    }
    return last;
}

spi::Failure ServerConnection::open(boot_clock::time_point deadline) {
    const auto now = boot_clock::now();
    const bool unchecked = now - used_ > idle_unchecked;
    if (connected() && unchecked && (guard_.ended() || spoken_to())) close();
    used_ = now;
    if (connected()) return {};
    const bool spare = resolve_ == Resolve::no;
    if (spare && now < server_.crowded_until())
        return {server_.errors.make(Error::too_many), "the server has no connection to spare"};
    if (spare)
        if (auto why = no_spare()) return why;
    Server::Opening opening(server_);
    // A caller's own thread has no time beyond its caller's.
    const auto until = spare ? deadline : spi::net::connect_until(deadline);
    const auto look_up = spare ? std::optional<boot_clock::time_point>() : deadline;
    spi::Failure failed;
    try {
        failed = connect_anywhere(opening, until, look_up);
        if (failed.why == server_.errors.make(Error::too_many)) {
            // The engine's connections matter more than those that save callers a thread switch.
            server_.crowd(now + crowded_for);
            if (!spare) server_.watchdog->end_spares();
        }
        if (!failed) failed = introduce(until);
    } catch (const std::bad_alloc&) {  // says nothing about the server
        close();
        throw;
    } catch (const std::exception& e) {  // a number that is none, for instance
        failed = {server_.errors.make(connected() ? Error::strange_answer : Error::closed),
                  first_words(e.what())};
    }
    if (failed) close();
    const bool unanswered = !failed || failed.why == server_.errors.make(Error::no_answer);
    if (unanswered && opening.answered() && boot_clock::now() >= deadline)
        failed.why = server_.errors.make(Error::connecting);
    return failed;
}

std::string first_words(std::string_view message) {
    constexpr std::size_t longest = 200;
    return std::string(message.substr(0, std::min(message.find('\n'), longest)));
}

}  // namespace holdfast::sql
