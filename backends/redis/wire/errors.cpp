#include "errors.hpp"

#include "holdfast/spi/net/category.hpp"

namespace holdfast::redis {
namespace {

constexpr spi::net::Meaning meanings[] = {
    {Error::unresolved, errc::unavailable, "the host name could not be resolved"},
    {Error::refused, errc::unavailable, "the server could not be reached"},
    {Error::no_answer, errc::unavailable, "the server did not answer in time"},
    {Error::closed, errc::unavailable, "the connection to the server broke"},
    {Error::tls, errc::unavailable, "no secure connection to the server"},
    {Error::protocol, errc::unavailable, "the answer is not one of a Redis server"},
    {Error::denied, errc::denied, "the server refused the user, the password or the permission"},
    {Error::busy, errc::unavailable, "the server is busy or still starting"},
    {Error::read_only, errc::unavailable, "the server is a read-only replica"},
    {Error::no_write, errc::unavailable, "the server takes no writes at present"},
    {Error::wrong_type, errc::kind_mismatch, "the key exists as something other than a lock"},
    {Error::cluster, errc::not_supported, "this is a Redis Cluster, which is not supported"},
    {Error::not_replicated, errc::unavailable, "too few replicas have confirmed it"},
    {Error::no_script, errc::unavailable, "the server has forgotten a script"},
    {Error::too_old, errc::not_supported, "Redis 6.2 or newer is needed"},
    {Error::refused_command, errc::not_supported, "the server refused the command"},
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
    {"TRYAGAIN", Error::busy},
    {"CLUSTERDOWN", Error::busy},
    {"ERR max number of clients", Error::busy},
    {"READONLY", Error::read_only},
    {"OOM", Error::no_write},
    {"MISCONF", Error::no_write},
    {"NOREPLICAS", Error::no_write},
    {"NOAUTH", Error::denied},
    {"WRONGPASS", Error::denied},
    {"NOPERM", Error::denied},
    {"ERR invalid password", Error::denied},
    {"DENIED", Error::denied},
    {"WRONGTYPE", Error::wrong_type},
    {"MOVED", Error::cluster},
    {"ASK", Error::cluster},
    {"CROSSSLOT", Error::cluster},
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
    // A right that is missing inside a script comes with other words in front.
    if (text.find("NOPERM") != text.npos || text.find("ACL failure in script") != text.npos ||
        text.find("The user executing the script can't") != text.npos)
        return make(Error::denied);
    if (text.find("WRONGTYPE") != text.npos) return make(Error::wrong_type);
    if (text.find("OOM command not allowed") != text.npos) return make(Error::no_write);
    return make(Error::refused_command);
}

std::string_view shown(std::string_view text) noexcept {
    for (const Prefix& p : prefixes)
        if (text.starts_with(p.text)) return text.substr(0, 200);
    return text.starts_with("ERR unknown command") ? "ERR unknown command" : text.substr(0, 200);
}

bool of_one_key(const error_code& ec) noexcept {
    return ec == make(Error::denied) || ec == make(Error::cluster) || ec == make(Error::wrong_type);
}

bool nothing_done(const error_code& ec) noexcept {
    if (ec.category() != category()) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::denied:
        case Error::busy:
        case Error::read_only:
        case Error::no_write:
        case Error::cluster:
        case Error::wrong_type:
        case Error::no_script:
            return true;
        default:
            return false;
    }
}

}  // namespace holdfast::redis
