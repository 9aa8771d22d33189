#include "holdfast/log.hpp"

#include <unistd.h>

#include <cerrno>

#include "config/text.hpp"
#include "holdfast/spi/safe_text.hpp"

namespace holdfast {
namespace {

Verbosity verbosity_of(Event::Kind kind) noexcept {
    switch (kind) {
        case Event::Kind::lost:
        case Event::Kind::warning:
            return Verbosity::losses;
        case Event::Kind::at_risk:
        case Event::Kind::recovered:
        case Event::Kind::in_doubt:
        case Event::Kind::unreachable:
        case Event::Kind::reachable:
        case Event::Kind::moved:
            return Verbosity::trouble;
        case Event::Kind::waiting:
        case Event::Kind::acquired:
        case Event::Kind::released:
            break;
    }
    return Verbosity::all;
}

std::string reason_of(const Event& e) {
    std::string why = e.reason ? e.reason.message() : std::string();
    if (!e.text.empty() && e.text != why) why += (why.empty() ? "" : ": ") + e.text;
    return why.empty() ? why : " (" + config::printable(std::move(why)) + ')';
}

std::string token_of(const Event& e) {
    return e.token ? ", token " + std::to_string(e.token.value) : std::string();
}

void write_line(std::string line) noexcept {
    for (std::string_view left = line; !left.empty();) {
        const ssize_t n = ::write(STDERR_FILENO, left.data(), left.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        left.remove_prefix(static_cast<std::size_t>(n));
    }
}

}  // namespace

std::string log_line(const Event& e) {
    const std::string name = spi::quoted_name(e.name);
    switch (e.kind) {
        case Event::Kind::waiting:
            return "waiting for " + name;
        case Event::Kind::acquired:
            return "acquired " + name + " after " + std::to_string(e.took.count()) + " ms" +
                   token_of(e);
        case Event::Kind::at_risk:
            return std::string(!e.reason || is_silence(e.reason)
                                   ? "the server did not answer a renewal of "
                                   : "the server refused a renewal of ") +
                   name + reason_of(e) + "; " + std::to_string(e.left.count()) + " ms left" +
                   token_of(e);
        case Event::Kind::recovered:
            return "the server answers renewals of " + name + " again" + token_of(e);
        case Event::Kind::lost:
            return "LOST lock " + name + reason_of(e) + token_of(e);
        case Event::Kind::in_doubt:
            return "the server did not answer about " + name + reason_of(e) +
                   "; resolving the request";
        case Event::Kind::released:
            return "released " + name + token_of(e);
        case Event::Kind::unreachable:
            return "no server answers the waiter for " + name + reason_of(e) + "; it waits on";
        case Event::Kind::reachable:
            return "a server answers the waiter for " + name + " again";
        case Event::Kind::moved:
            return "the server moved " + config::printable(e.text);
        case Event::Kind::warning:
            break;
    }
    return config::printable(e.text);
}

EventSink log_to_stderr(Verbosity verbosity) {
    return [verbosity](const Event& e) {
        if (verbosity_of(e.kind) <= verbosity) write_line("holdfast: " + log_line(e) + '\n');
    };
}

}  // namespace holdfast
