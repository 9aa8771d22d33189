#include "errors.hpp"

#include <algorithm>
#include <charconv>

#include "holdfast/spi/net/category.hpp"
#include "script.hpp"

namespace holdfast::resp {
namespace {

using spi::net::Meaning;

constexpr Meaning meanings[] = {
    {Error::unresolved, errc::unavailable, "the host name could not be resolved"},
    {Error::refused, errc::unavailable, "the server could not be reached"},
    {Error::no_answer, errc::unavailable, "the server did not answer in time"},
    {Error::closed, errc::unavailable, "the connection to the server broke"},
    {Error::tls, errc::unavailable, "no secure connection to the server"},
    {Error::protocol, errc::unavailable, "the answer is not one of a Redis server"},
    {Error::denied, errc::denied, "the server refused the user, the password or the permission"},
    {Error::busy, errc::unavailable, "the server is busy or still starting: try again later",
     Meaning::said},
    {Error::read_only, errc::unavailable,
     "the server is a read-only replica: the URL must lead to its primary", Meaning::said},
    {Error::no_write, errc::unavailable,
     "the server takes no writes, since it cannot save its data: its log and its disk say why",
     Meaning::said},
    {Error::wrong_type, errc::kind_mismatch, "the key exists as something other than a lock"},
    {Error::cluster, errc::not_supported, "this server is part of a Redis Cluster"},
    {Error::not_replicated, errc::unavailable,
     "too few replicas have confirmed it: see min_replicas_ack and the server's replicas",
     Meaning::said},
    {Error::no_script, errc::unavailable, "the server has forgotten a script"},
    {Error::too_old, errc::not_supported, "Redis 6.2 or newer is needed"},
    {Error::refused_command, errc::not_supported, "the server refused the command"},
    {Error::no_memory, errc::unavailable,
     "the server is out of memory: raise its maxmemory, or find what fills it", Meaning::said},
    {Error::few_replicas, errc::unavailable,
     "the server takes no writes until more replicas are connected (min-replicas-to-write)",
     Meaning::said},
    {Error::reserved_name, errc::bad_name,
     "a name may not contain \"}:hf:\", which the keys of Holdfast itself have"},
    {Error::no_command, errc::not_supported,
     "the server has switched a command off, or renamed it (rename-command); `holdfast doctor` "
     "names it"},
    {Error::no_primary, errc::unavailable,
     "the primary cannot be used: it may have failed, and another one takes over", Meaning::said},
    {Error::no_sentinel, errc::unavailable, "no Sentinel answered"},
    {Error::unknown_primary, errc::bad_config, "the Sentinels watch no primary of this name"},
    {Error::unconfirmed, errc::unavailable,
     "no majority of the Sentinels has confirmed the primary in time", Meaning::said},
    {Error::moving, errc::unavailable,
     "the cluster moves this name's slot to another server, and serves it again after that",
     Meaning::said},
    {Error::cut_short, errc::unavailable,
     "the cluster moves this name's slot to another server, and serves it again after that",
     Meaning::said},
    {Error::uncovered, errc::unavailable,
     "no server of the cluster has this name's slot: `holdfast doctor` says more", Meaning::said},
    {Error::no_cluster, errc::not_supported, "this server is not part of a Redis Cluster"},
    {Error::two_slots, errc::bad_name,
     "in a Redis Cluster a name with a \"}\" needs a {tag} before it, that is not empty"},
};

struct Prefix {
    std::string_view text;
    Error code;
};
// Matched at the beginning: servers append words ("READONLY You can't write ... script: ...").
constexpr Prefix prefixes[] = {
    {"NOSCRIPT", Error::no_script},
    {"LOADING", Error::busy},
    {"BUSY", Error::busy},
    {"MASTERDOWN", Error::busy},
    {"TRYAGAIN", Error::moving},
    {"CLUSTERDOWN", Error::uncovered},
    {"ERR max number of clients", Error::busy},
    {"READONLY", Error::read_only},
    {"OOM", Error::no_memory},
    {"MISCONF", Error::no_write},
    {"NOREPLICAS", Error::few_replicas},
    {"NOAUTH", Error::denied},
    {"WRONGPASS", Error::denied},
    {"NOPERM", Error::denied},
    {"ERR invalid password", Error::denied},
    {"DENIED", Error::denied},
    {"WRONGTYPE", Error::wrong_type},
    {"MOVED", Error::cluster},
    {"ASK", Error::cluster},
    {"CROSSSLOT", Error::cluster},
    {"ERR unknown command", Error::no_command},
    {"ERR Unknown Redis command", Error::no_command},
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const spi::net::Category c("redis", meanings);
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

error_code from_reply(std::string_view text) noexcept {
    for (const Prefix& p : prefixes)
        if (text.starts_with(p.text)) return make(p.code);
    // Redis 6.2 puts the script's name and line in front of what a command in it was answered:
    // "ERR Error running script (call to f_...): @user_script:1: @user_script: 1: -READONLY ...".
    constexpr std::string_view behind = ": -";
    for (auto at = text.find(behind); at != text.npos; at = text.find(behind, at + 1))
        for (const Prefix& p : prefixes)
            if (text.substr(at + behind.size()).starts_with(p.text)) return make(p.code);
    // While the slot is on its way, a key that is not there is looked for at the other server.
    if (text.find("access a non local key") != text.npos) return make(Error::cut_short);
    // A right that is missing inside a script comes with other words in front.
    if (text.find("NOPERM") != text.npos || text.find("ACL failure in script") != text.npos ||
        text.find("The user executing the script can't") != text.npos)
        return make(Error::denied);
    if (text.find("WRONGTYPE") != text.npos) return make(Error::wrong_type);
    if (text.find("OOM command not allowed") != text.npos) return make(Error::no_memory);
    if (text.find("Unknown Redis command") != text.npos ||
        text.find("Unknown command called from") != text.npos)  // Valkey
        return make(Error::no_command);
    return make(Error::refused_command);
}

std::string_view shown(std::string_view text) noexcept {
    // Behind the name of the command come its arguments.
    constexpr std::string_view unknown = "ERR unknown command";
    if (!text.starts_with(unknown)) return text.substr(0, 200);
    const auto open = text.find_first_not_of(" '`", unknown.size());
    if (open == text.npos) return unknown;
    const std::string_view name = text.substr(open, text.find_first_of(" '`,", open) - open);
    const bool plain = std::all_of(name.begin(), name.end(),
                                   [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    if (!plain || name.size() > 20) return unknown;
    const auto end = open + name.size();
    const bool quoted = end < text.size() && text[open - 1] == text[end] && text[end] != ' ';
    return text.substr(0, end + (quoted ? 1 : 0));
}

std::string shown(std::string_view text, const Script& script) {
    // "... script: SHA1, on @user_script:48.", in Redis 6.2 "...: @user_script: 48: -OOM ...".
    constexpr std::string_view at = "@user_script:";
    std::string names;
    if (const auto place = text.rfind(at); place != text.npos) {
        const auto from = text.find_first_not_of(' ', place + at.size());
        std::size_t line = 0;
        if (from != text.npos) std::from_chars(text.data() + from, text.data() + text.size(), line);
        std::string_view rest = script.text();
        for (; line > 1 && !rest.empty(); --line)
            rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
        rest = rest.substr(0, line == 1 ? rest.find('\n') : 0);
        for (std::string_view each : {"call('", "pcall_('"})
            for (auto call = rest.find(each); call != rest.npos; call = rest.find(each, call + 1)) {
                const auto name = rest.substr(call + each.size());
                const auto words = std::string(name.substr(0, name.find('\'')));
                if (names.find(words) == names.npos) names += (names.empty() ? "" : " or ") + words;
            }
    }
    const error_code ec = from_reply(text);
    if (!names.empty() && ec == make(Error::denied))
        // In Redis 7.0, and since 7.2.
        return text.find("access at least one of the keys") == text.npos &&
                       text.find("access a key") == text.npos
                   ? "NOPERM: the user may not run " + names
                   : "NOPERM: the user may not use the keys of this name (" + names + ")";
    if (!names.empty() && ec == make(Error::no_command)) return "the server has no " + names;
    // Which script it was is no news to anybody: "... script: SHA1, on @user_script:48." The words
    // before may say "in script: " as well.
    const auto on = text.rfind(", on @user_script:");
    return std::string(shown(on == text.npos ? text : text.substr(0, text.rfind(" script: ", on))));
}

bool of_one_key(const error_code& ec) noexcept {
    return ec == make(Error::denied) || ec == make(Error::cluster) || ec == make(Error::wrong_type);
}

bool for_now(const error_code& ec) noexcept {
    return ec == make(Error::busy) || ec == make(Error::read_only) || ec == make(Error::no_write) ||
           ec == make(Error::no_memory) || ec == make(Error::few_replicas) ||
           ec == make(Error::moving) || ec == make(Error::uncovered) ||
           ec == make(Error::cut_short);
}

bool waits_out(const error_code& ec) noexcept {
    return ec == make(Error::no_primary);
}

bool nothing_done(const error_code& ec) noexcept {
    if (ec.category() != category()) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::denied:
        case Error::busy:
        case Error::read_only:
        case Error::no_write:
        case Error::no_memory:
        case Error::few_replicas:
        case Error::cluster:
        case Error::moving:
        case Error::uncovered:
        case Error::wrong_type:
        case Error::no_script:
            return true;
        default:
            return false;
    }
}

}  // namespace holdfast::resp
