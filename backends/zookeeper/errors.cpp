#include "errors.hpp"

#include <string>

#include "client_library.hpp"

namespace holdfast::zookeeper {
namespace {

class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "zookeeper"; }
    std::string message(int code) const override {
        switch (code) {
            case static_cast<int>(Error::unresolved):
                return "no host name could be resolved";
            case static_cast<int>(Error::unreachable):
                return "no server could be reached";
            case static_cast<int>(Error::no_answer):
                return "no server answered in time";
            case static_cast<int>(Error::stale):
                return "the session has not been confirmed for too long";
            case ZCONNECTIONLOSS:
                return "the connection to the server broke";
            case ZOPERATIONTIMEOUT:
                return "the server did not answer in time";
            case ZSESSIONEXPIRED:
                return "the session has ended";
            case ZSESSIONMOVED:
                return "the session has moved to another server";
            case ZNOAUTH:
                return "the server refused the right to do that";
            case ZAUTHFAILED:
                return "the server refused the user or the password";
            case ZNONODE:
                return "the node does not exist";
            case ZNODEEXISTS:
                return "the node exists already";
            case ZNOCHILDRENFOREPHEMERALS:
                return "the node above is ephemeral, so it is none of a lock";
            case ZUNIMPLEMENTED:
                return "the server is too old: ZooKeeper 3.5 or newer is needed";
            case ZTHROTTLEDOP:
                return "the server has too much to do";
            default:
                return "the ZooKeeper client says: " + std::string(zerror(code));
        }
    }
    boost::system::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
            case ZNOAUTH:
            case ZAUTHFAILED:
            case ZINVALIDACL:
            case ZSESSIONCLOSEDREQUIRESASLAUTH:
                return make_error_condition(errc::denied);
            case ZNOCHILDRENFOREPHEMERALS:
                return make_error_condition(errc::kind_mismatch);
            case ZUNIMPLEMENTED:
            case ZBADARGUMENTS:
                return make_error_condition(errc::not_supported);
            default:
                return make_error_condition(errc::unavailable);
        }
    }
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const Category c;
    return c;
}

error_code make(Error e) noexcept {
    return {static_cast<int>(e), category()};
}

error_code from_rc(int rc) noexcept {
    return rc == ZOK ? error_code() : error_code(rc, category());
}

bool unanswered(int rc) noexcept {
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZCLOSING ||
           rc == ZSESSIONEXPIRED || rc == ZSESSIONMOVED || rc == ZINVALIDSTATE || rc == ZAUTHFAILED;
}

}  // namespace holdfast::zookeeper
