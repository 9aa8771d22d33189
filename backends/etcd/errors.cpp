#include "errors.hpp"

#include "holdfast/spi/net/category.hpp"

namespace holdfast::etcd {
namespace {

using spi::net::Meaning;

constexpr Meaning meanings[] = {
    {Error::unresolved, errc::unavailable, "no host name could be resolved"},
    {Error::unreachable, errc::unavailable, "no member could be reached"},
    {Error::no_answer, errc::unavailable, "no member answered in time"},
    {Error::closed, errc::unavailable, "the connection to the server broke"},
    {Error::protocol, errc::unavailable, "the answer is not one of etcd's"},
    {Error::no_leader, errc::unavailable, "the members have no leader: a majority of them must run",
     Meaning::said},
    {Error::learner, errc::unavailable,
     "the member is a learner, which serves no requests: name a voting member", Meaning::said},
    {Error::no_lease, errc::unavailable, "the server no longer has the lease"},
    {Error::no_space, errc::unavailable,
     "the server's database is full (alarm NOSPACE): compact and defragment it, then disarm the "
     "alarm",
     Meaning::said},
    {Error::overloaded, errc::unavailable, "the server has too many requests: try again later",
     Meaning::said},
    {Error::denied, errc::denied, "the server denied permission"},
    {Error::tls, errc::unavailable, "no secure connection to the server"},
    {Error::no_users, errc::unavailable, "the server has no authentication"},
    {Error::token, errc::denied, "the server demands a user and a password"},
    {Error::too_old, errc::not_supported,
     "the server does not know the request: it needs etcd 3.4 or newer"},
    {Error::no_grpc, errc::not_supported,
     "the host does not speak gRPC: name the port for clients (2379) of etcd 3.4 or newer"},
    {Error::refused, errc::unavailable, "the server refused the request", Meaning::said},
    {Error::other_kind, errc::kind_mismatch,
     "there is a key at the name itself: of another kind of lock, or none"},
    {Error::other_cluster, errc::bad_config, "the hosts of the URL belong to different clusters"},
    {Error::failed, errc::unavailable, "the server failed: its log says why", Meaning::said},
};

// The status codes of gRPC that etcd uses.
enum : int {
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    out_of_range = 11,
    unimplemented = 12,
    unavailable = 14,
    unauthenticated = 16
};

bool has(std::string_view text, std::string_view part) noexcept {
    return text.find(part) != text.npos;
}

}  // namespace

const boost::system::error_category& category() noexcept {
    static const spi::net::Category c("etcd", meanings);
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

error_code from_status(int status, std::string_view text) noexcept {
    switch (status) {
        case not_found:
            return make(has(text, "lease") ? Error::no_lease : Error::refused);
        case resource_exhausted:
            return make(has(text, "space") ? Error::no_space : Error::overloaded);
        case permission_denied:
            return make(Error::denied);
        case unauthenticated:
            return make(Error::token);
        case invalid_argument:
            // "user name is empty": authentication is enabled and no user was named. "revision of
            // auth store is old": users were changed since the token was given.
            if (has(text, "user name is empty") || has(text, "revision of auth"))
                return make(Error::token);
            return make(has(text, "auth") ? Error::denied : Error::refused);
        case failed_precondition:
            return make(has(text, "authentication is not enabled") ? Error::no_users
                                                                   : Error::refused);
        case unavailable:
        case deadline_exceeded:
            if (has(text, "learner")) return make(Error::learner);
            return make(has(text, "leader") ? Error::no_leader : Error::no_answer);
        case out_of_range:
            return make(Error::refused);
        case unimplemented:
            return make(Error::too_old);
        default:
            return make(Error::failed);
    }
}

bool nothing_done(const error_code& ec) noexcept {
    if (ec.category() != category()) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::unresolved:
        case Error::unreachable:
        case Error::learner:
        case Error::no_lease:
        case Error::overloaded:
        case Error::denied:
        case Error::tls:
        case Error::token:
        case Error::no_users:
        case Error::too_old:
        case Error::no_grpc:
        case Error::refused:
        case Error::other_cluster:
            return true;
        default:
            return false;
    }
}

}  // namespace holdfast::etcd
