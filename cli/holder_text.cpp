// The holder of a lock, in words and as JSON.
#include "holder_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "duration.hpp"
#include "message.hpp"

namespace holdfast::cli {

std::string who(const Holder& h) {
    if (h.foreign || h.host.empty())
        return fmt::format("a foreign client ({})", shown(h.owner.substr(0, 60)));
    std::string text = shown(h.host);
    if (h.pid != 0) text += fmt::format(" (pid {})", h.pid);
    if (!h.note.empty()) text += " " + in_quotes(h.note);
    return text;
}

std::string described(const Holder& h) {
    std::string text = who(h);
    if (h.held_for) text += " for " + spoken(*h.held_for);
    if (h.token) text += fmt::format(", token {}", h.token.value);
    if (h.ttl_left)
        text += fmt::format(", {} left", spoken(*h.ttl_left));
    else
        text += ", without a time limit";
    if (h.revoked) text += ", revoked";
    return text;
}

std::string described(const Inspection& i) {
    if (i.holders.empty()) return "free";
    std::string text = "held by " + described(i.holders.front());
    const std::size_t n = i.waiters.size();
    if (n == 1) text += "; 1 waiter";
    if (n > 1) text += fmt::format("; {} waiters", n);
    return text;
}

std::size_t own_place(const Inspection& i) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    for (std::size_t n = 0; n < i.waiters.size(); ++n) {
        const Holder& w = i.waiters[n];
        if (w.pid == ::getpid() && w.host == host) return n + 1;
    }
    return 0;
}

boost::json::object as_json(const Holder& h) {
    boost::json::object o{{"owner", clean_utf8(h.owner)}, {"host", clean_utf8(h.host)}};
    o["pid"] = h.pid;
    o["note"] = clean_utf8(h.note);
    if (h.token) o["token"] = h.token.value;
    if (h.ttl_left) o["ttl_left_ms"] = h.ttl_left->count();
    if (h.held_for) o["held_for_ms"] = h.held_for->count();
    o["foreign"] = h.foreign;
    o["revoked"] = h.revoked;
    return o;
}

}  // namespace holdfast::cli
