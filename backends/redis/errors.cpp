#include "errors.hpp"

#include <string>

namespace holdfast::redis {
namespace {

class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "redis"; }
    std::string message(int code) const override {
        switch (static_cast<Error>(code)) {
            case Error::unresolved:
                return "the host name could not be resolved";
            case Error::refused:
                return "the server could not be reached";
            case Error::no_answer:
                return "the server did not answer in time";
            case Error::closed:
                return "the connection to the server broke";
            case Error::tls:
                return "no secure connection to the server";
            case Error::protocol:
                return "the answer is not one of a Redis server";
            case Error::denied:
                return "the server refused the user, the password or the right";
            case Error::busy:
                return "the server is busy or still starting";
            case Error::read_only:
                return "the server is a read-only replica";
            case Error::no_write:
                return "the server takes no writes at present";
            case Error::wrong_type:
                return "the key exists as something other than a lock";
            case Error::cluster:
                return "this is a Redis Cluster, which is not supported";
            case Error::not_replicated:
                return "too few replicas have confirmed it";
            case Error::no_script:
                return "the server has forgotten a script";
            case Error::too_old:
                return "Redis 6.2 or newer is needed";
            case Error::refused_command:
                return "the server refused the command";
        }
        return "unknown error";
    }
    boost::system::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<Error>(code)) {
            case Error::denied:
                return make_error_condition(errc::denied);
            case Error::wrong_type:
                return make_error_condition(errc::kind_mismatch);
            case Error::cluster:
            case Error::too_old:
            case Error::refused_command:
                return make_error_condition(errc::not_supported);
            default:
                return make_error_condition(errc::unavailable);
        }
    }
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
    static const Category c;
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

error_code from_reply(std::string_view text) noexcept {
    for (const Prefix& p : prefixes)
        if (text.starts_with(p.text)) return make(p.code);
    // A right that is missing inside a script comes with other words in front.
    if (text.find("NOPERM") != text.npos || text.find("ACL failure in script") != text.npos)
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
