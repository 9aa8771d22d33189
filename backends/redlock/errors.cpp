#include "errors.hpp"

#include "holdfast/spi/net/category.hpp"

namespace holdfast::redlock {
namespace {

constexpr spi::net::Meaning meanings[] = {
    {Error::no_quorum, errc::no_quorum, "fewer than a majority of the nodes answered"},
    {Error::too_slow, errc::no_quorum, "a majority of the nodes answered too slowly for the ttl"},
    {Error::same_server, errc::bad_config, "two of the nodes are one server"},
    {Error::other_nodes, errc::bad_config,
     "a node is used with another set of nodes, max_ttl or durable"},
    {Error::ttl_too_long, errc::bad_config, "the ttl is longer than max_ttl"},
    {Error::sealed, errc::kind_mismatch,
     "the key exists as something other than a lock of this format"},
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const spi::net::Category c("redlock", meanings);
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

}  // namespace holdfast::redlock
