// What a user's roles permit below a prefix, by etcd's answers about them.
#pragma once
#include <string>
#include <vector>

namespace holdfast::etcd {

namespace rpc {
class AuthRoleGetResponse;
}

/// Ranges of keys that a user may read, and write; filled role by role.
class Rights {
public:
    /// The answer of Auth/RoleGet.
    void add(const rpc::AuthRoleGetResponse& role);
    /// "read below /holdfast/ and write below /holdfast/"; empty if all of it is permitted.
    std::string missing(const std::string& prefix) const;

private:
    struct Range {
        std::string from, to;  ///< to: not part of it; empty: without end
    };
    static bool covers(std::vector<Range>, std::string from, const std::string& to);
    std::vector<Range> read_, write_;
};

}  // namespace holdfast::etcd
