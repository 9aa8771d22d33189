#include "errors.hpp"

#include "holdfast/spi/net/category.hpp"

namespace holdfast::etcd {
namespace {

constexpr spi::net::Meaning meanings[] = {
    {Error::unresolved, errc::unavailable, "no host name could be resolved"},
    {Error::unreachable, errc::unavailable, "no member could be reached"},
    {Error::no_answer, errc::unavailable, "no member answered in time"},
    {Error::closed, errc::unavailable, "the connection to the server broke"},
    {Error::protocol, errc::unavailable, "the answer is not one of etcd's v3 gateway"},
    {Error::no_leader, errc::unavailable, "the members have no leader"},
    {Error::no_lease, errc::unavailable, "the server no longer has the lease"},
    {Error::no_space, errc::unavailable,
     "the server's database is full (alarm NOSPACE): compact and defragment it, then disarm the "
     "alarm"},
    {Error::overloaded, errc::unavailable, "the server has too many requests"},
    {Error::denied, errc::denied, "the server denied permission"},
    {Error::too_old, errc::not_supported, "etcd 3.4 or newer is needed"},
    {Error::refused, errc::unavailable, "the server refused the request"},
};

// The codes of gRPC that the gateway passes on.
enum : long long {
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    permission_denied = 7,
    resource_exhausted = 8,
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

error_code from_answer(long long grpc_code, unsigned http_status, std::string_view text) noexcept {
    switch (grpc_code) {
        case not_found:
            return make(has(text, "lease") ? Error::no_lease : Error::refused);
        case resource_exhausted:
            return make(has(text, "space") ? Error::no_space : Error::overloaded);
        case permission_denied:
        case unauthenticated:
            return make(Error::denied);
        case invalid_argument:
            // "user name is empty": authentication is enabled and no user was named.
            return make(has(text, "user name") || has(text, "auth") ? Error::denied
                                                                    : Error::refused);
        case unavailable:
        case deadline_exceeded:
            return make(has(text, "leader") ? Error::no_leader : Error::no_answer);
        default:
            return make(http_status == 404 ? Error::too_old : Error::refused);
    }
}

bool nothing_done(const error_code& ec) noexcept {
    if (ec.category() != category()) return false;
    switch (static_cast<Error>(ec.value())) {
        case Error::unresolved:
        case Error::unreachable:
        case Error::no_lease:
        case Error::no_space:
        case Error::overloaded:
        case Error::denied:
        case Error::too_old:
        case Error::refused:
            return true;
        default:
            return false;
    }
}

}  // namespace holdfast::etcd
