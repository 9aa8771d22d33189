#include "errors.hpp"

#include <string>

namespace holdfast::redlock {
namespace {

class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "redlock"; }
    std::string message(int code) const override {
        switch (static_cast<Error>(code)) {
            case Error::no_quorum:
                return "fewer than a majority of the nodes answered";
            case Error::too_slow:
                return "a majority of the nodes answered too slowly for the ttl";
            case Error::same_server:
                return "two of the nodes are one server";
            case Error::other_nodes:
                return "a node is used with another set of nodes";
            case Error::ttl_too_long:
                return "the ttl is longer than max_ttl";
            case Error::sealed:
                return "the key exists as something other than a lock of this format";
        }
        return "unknown error";
    }
    boost::system::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<Error>(code)) {
            case Error::same_server:
            case Error::other_nodes:
            case Error::ttl_too_long:
                return make_error_condition(errc::bad_config);
            case Error::sealed:
                return make_error_condition(errc::kind_mismatch);
            default:
                return make_error_condition(errc::no_quorum);
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

}  // namespace holdfast::redlock
