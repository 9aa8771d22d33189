#include "rights.hpp"

#include <algorithm>

#include "keys.hpp"
#include "messages.hpp"

namespace holdfast::etcd {

void Rights::add(const boost::json::object& role) {
    const auto* all = array(role, "perm");
    if (all == nullptr) return;
    const std::string without_end(1, '\0');
    for (const auto& one : *all) {
        if (!one.is_object()) continue;
        const boost::json::object& o = one.get_object();
        Range range{from_base64(text(o, "key")), from_base64(text(o, "range_end"))};
        // As in requests: no end is the key alone, and a zero byte is no end.
        if (range.to.empty())
            range.to = range.from + '\0';
        else if (range.to == without_end)
            range.to.clear();
        const std::string kind = text(o, "permType");  // READ is left out
        if (kind != "WRITE") read_.push_back(range);
        if (kind == "WRITE" || kind == "READWRITE") write_.push_back(std::move(range));
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
