#include "rights.hpp"

#include <etcd.pb.h>

#include <algorithm>

#include "keys.hpp"

namespace holdfast::etcd {

void Rights::add(const rpc::AuthRoleGetResponse& role) {
    const std::string without_end(1, '\0');
    for (const rpc::Permission& one : role.perm()) {
        Range range{one.key(), one.range_end()};
        // As in requests: no end is the key alone, and a zero byte is no end.
        if (range.to.empty())
            range.to = range.from + '\0';
        else if (range.to == without_end)
            range.to.clear();
        if (one.type() != rpc::Permission::WRITE) read_.push_back(range);
        if (one.type() != rpc::Permission::READ) write_.push_back(std::move(range));
    }
}

std::string Rights::missing(const std::string& prefix) const {
    std::string out;
    if (!covers(read_, prefix, after(prefix))) out = "read below " + prefix;
    if (!covers(write_, prefix, after(prefix)))
        out += (out.empty() ? "write below " : " and write below ") + prefix;
    return out;
}

bool Rights::covers(std::vector<Range> all, std::string from, const std::string& to) {
    std::sort(all.begin(), all.end(),
              [](const Range& a, const Range& b) { return a.from < b.from; });
    for (const Range& r : all) {
        if (r.from > from) return false;
        if (r.to.empty() || r.to >= to) return true;
        from = std::max(from, r.to);
    }
    return false;
}

}  // namespace holdfast::etcd
