// The holder of a lock, in words.
#include "holder_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

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
    if (h.mode == Mode::shared) text += ", shared";
    if (h.permits > 1) text += fmt::format(", {} permits", h.permits);
    if (h.revoked) text += ", revoked";
    if (h.asked) text += ", asked to release it";
    return text;
}

std::string described_holders(const Inspection& i) {
    if (i.holders.empty() && i.closed_for)
        return fmt::format("not held, but closed for another {}", spoken(*i.closed_for));
    if (i.holders.empty()) return "free";
    std::string text = "held by " + described(i.holders.front());
    const std::size_t others = i.holders.size() - 1;
    if (others == 1) text += " and 1 other";
    if (others > 1) text += fmt::format(" and {} others", others);
    return text;
}

std::string described(const Inspection& i) {
    if (is_free(i)) return "free";
    std::string text = described_holders(i);
    const std::size_t n = i.waiters.size();
    if (n == 1) text += "; 1 waiter";
    if (n > 1) text += fmt::format("; {} waiters", n);
    return text;
}

std::string in_words(const RequestError& e) {
    return e.text.empty() ? e.code.message() : e.text;
}

bool is_free(const Inspection& i) {
    return i.holders.empty() && !i.closed_for;
}

namespace {

bool is_ours(const Holder& h) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return h.pid == ::getpid() && h.host == host;
}

}  // namespace

bool all_ours(const Inspection& i) {
    return !i.holders.empty() && std::all_of(i.holders.begin(), i.holders.end(), is_ours);
}

std::size_t own_place(const Inspection& i) {
    const auto mine = std::find_if(i.waiters.begin(), i.waiters.end(), is_ours);
    return mine == i.waiters.end() ? 0 : static_cast<std::size_t>(mine - i.waiters.begin()) + 1;
}

}  // namespace holdfast::cli
