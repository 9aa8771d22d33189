// Words for the process are handled here; everything else is a fault in the words of fault.hpp.
#include "session.hpp"

#include <fmt/format.h>

#include "holdfast/lab/error.hpp"
#include "words.hpp"

namespace holdfast::lab::cli {
namespace {

std::string counters_text(const ProxyCounters& counters) {
    return fmt::format(
        "to server {} bytes, to client {} bytes, swallowed {}, connections {} accepted, {} open, "
        "{} cut",
        counters.forwarded_to_server, counters.forwarded_to_client,
        counters.swallowed_to_server + counters.swallowed_to_client, counters.connections_accepted,
        counters.connections_open, counters.connections_cut);
}

Proxy& proxy_of(Place& place) {
    if (!place.proxy) {
        throw LabError("network faults need --proxy");
    }
    return *place.proxy;
}

std::string execute_one(const std::vector<std::string>& words, Place& place) {
    const auto& verb = words[0];
    const bool alone = words.size() == 1;
    if (verb == "pause" && alone) {
        place.server->pause();
    } else if (verb == "resume" && alone) {
        place.server->resume();
    } else if (verb == "kill" && alone) {
        place.server->kill();
    } else if (verb == "restart" && (alone || (words.size() == 2 && words[1] == "fresh"))) {
        place.server->restart(!alone);
    } else if (verb == "status" && alone) {
        return place.url() + (place.proxy ? ": " + counters_text(place.proxy->counters()) : "");
    } else {
        std::string text;
        for (const auto& word : words) {
            text += (text.empty() ? "" : " ") + word;
        }
        Fault fault;
        try {
            fault = parse_fault(text);
        } catch (const LabError& error) {
            throw LabError(std::string(error.what()) + "; try help");
        }
        if (fault.kind == Fault::Kind::heal) {
            proxy_of(place).heal();
        } else {
            proxy_of(place).apply(fault);
        }
    }
    return "ok";
}

}  // namespace

const char* const session_help =
    R"(A leading number chooses one server, as in "2 kill"; otherwise all are meant.

  pause, resume            stop and continue the server process
  kill                     kill it (SIGKILL)
  restart [fresh]          start it again, with its data or empty
  status                   URL, and bytes and connections through the proxy
  quit                     end everything

With --proxy:
  delay MS [jitter MS] [to_server|to_client]
  cut, reset               end all connections now
  cut|reset to_server|to_client BYTES [new] [times N]
                           end a connection after so many bytes
  swallow [to_server|to_client] [after BYTES] [cut BYTES|reset BYTES] [times N]
                           drop what comes; bare: the server acts, its answer is lost
  stall [to_server|to_client], hole
                           keep connections open and pass nothing on
  refuse                   refuse new connections
  heal                     back to normal
)";

std::string Place::url() {
    return server->url(proxy ? proxy->port() : server->port());
}

std::string execute(const std::string& line, std::vector<Place>& places, bool& quit) {
    auto words = detail::words_of(line);
    if (words.empty()) {
        return {};
    }
    if (words[0] == "quit") {
        quit = true;
        return {};
    }
    if (words[0] == "help") {
        return session_help;
    }
    std::size_t first = 0;
    std::size_t end = places.size();
    if (const auto number = detail::number_of(words[0])) {
        if (*number < 1 || *number > places.size()) {
            throw LabError(fmt::format("there are servers 1 to {}", places.size()));
        }
        first = static_cast<std::size_t>(*number) - 1;
        end = first + 1;
        words.erase(words.begin());
        if (words.empty()) {
            throw LabError("what should be done with that server? try help");
        }
    }
    std::string text;
    for (std::size_t i = first; i < end; ++i) {
        const auto one = execute_one(words, places[i]);
        if (one != "ok" || text.empty()) {
            text += (text.empty() ? "" : "\n") + one;
        }
    }
    return text;
}

}  // namespace holdfast::lab::cli
