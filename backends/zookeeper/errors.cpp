#include "errors.hpp"

#include <string>

#include "client_library.hpp"
#include "holdfast/spi/net/category.hpp"

namespace holdfast::zookeeper {
namespace {

using spi::net::Meaning;

constexpr Meaning meanings[] = {
    {Error::unresolved, errc::unavailable, "no host name could be resolved"},
    {Error::unreachable, errc::unavailable, "no server could be reached"},
    {Error::no_answer, errc::unavailable, "no server answered in time"},
    {Error::too_short, errc::bad_config,
     "the session is too short to be confirmed in time; see tick_time"},
    {Error::used_up, errc::unavailable,
     "the sequence numbers below the lock's node are used up: remove that node while nobody holds "
     "the lock or waits for it (the servers remove an empty container within a minute)",
     Meaning::said},
    {Error::no_ensemble, errc::bad_config, "the hosts are not the servers of one ensemble"},
    {Error::node_gone, errc::lost, "the lease was lost: its node was deleted"},
    {Error::session_over, errc::lost, "the lease was lost: the servers have ended its session"},
    {ZCONNECTIONLOSS, errc::unavailable, "the connection to the server broke"},
    {ZOPERATIONTIMEOUT, errc::unavailable, "the server did not answer in time"},
    {ZSESSIONEXPIRED, errc::unavailable, "the session has ended"},
    {ZSESSIONMOVED, errc::unavailable, "the session has moved to another server"},
    {ZNOAUTH, errc::denied, "the server denied permission"},
    {ZAUTHFAILED, errc::denied, "the server refused the user or the password"},
    {ZINVALIDACL, errc::denied},
    {ZSESSIONCLOSEDREQUIRESASLAUTH, errc::denied},
    {ZNONODE, errc::unavailable, "the node does not exist"},
    {ZNODEEXISTS, errc::unavailable, "the node exists already"},
    {ZNOCHILDRENFOREPHEMERALS, errc::kind_mismatch,
     "the parent node is ephemeral, so it is not that of a lock"},
    {ZUNIMPLEMENTED, errc::not_supported,
     "the server is too old: ZooKeeper 3.5 or newer is needed"},
    {ZBADARGUMENTS, errc::not_supported},
    {ZTHROTTLEDOP, errc::unavailable, "the server is overloaded: try again later", Meaning::said},
};

std::string words_of_client(int code) {
    return "the ZooKeeper client reports: " + std::string(zerror(code));
}

}  // namespace

const boost::system::error_category& category() noexcept {
    static const spi::net::Category c("zookeeper", meanings, words_of_client);
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

error_code from_rc(int rc) noexcept {
    return rc == ZOK ? error_code() : error_code(rc, category());
}

bool unanswered(int rc) noexcept {
    // After an answer that it cannot read or does not expect, the library ends the connection and
    // gives that error to every request on it.
    if (rc == ZRUNTIMEINCONSISTENCY || rc == ZMARSHALLINGERROR) return true;
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZCLOSING ||
           rc == ZSESSIONEXPIRED || rc == ZSESSIONMOVED || rc == ZINVALIDSTATE || rc == ZAUTHFAILED;
}

}  // namespace holdfast::zookeeper
