// A request to etcd as a line of text, as its page has them.
#pragma once
#include <etcd.pb.h>

#include <string>
#include <string_view>

namespace holdfast::test {

namespace rpc = etcd::rpc;

inline std::string keys(const std::string& key, const std::string& end) {
    return end.empty() ? key : key + " .. " + end;
}

inline std::string shown(const rpc::Compare& c) {
    const std::string at = "(" + keys(c.key(), c.range_end()) + ")";
    const std::string is = c.result() == rpc::Compare::EQUAL     ? " = "
                           : c.result() == rpc::Compare::GREATER ? " > "
                                                                 : " < ";
    if (c.target() == rpc::Compare::CREATE)
        return "created" + at + is + std::to_string(c.create_revision());
    if (c.target() == rpc::Compare::MOD)
        return "modified" + at + is + std::to_string(c.mod_revision());
    return "value" + at + is + c.value();
}

std::string shown(const rpc::TxnRequest&);

inline std::string shown(const rpc::RequestOp& r) {
    if (r.has_request_put()) {
        const rpc::PutRequest& p = r.request_put();
        const std::string value = p.ignore_value() ? "the same value" : p.value();
        const std::string lease =
            p.ignore_lease() ? "the same lease" : "lease " + std::to_string(p.lease());
        return "put(" + p.key() + ", " + value + ", " + lease + ")";
    }
    if (r.has_request_delete_range()) {
        const rpc::DeleteRangeRequest& d = r.request_delete_range();
        return "delete(" + keys(d.key(), d.range_end()) + (d.prev_kv() ? ", and tell)" : ")");
    }
    if (r.has_request_range()) {
        const rpc::RangeRequest& g = r.request_range();
        const std::string limit =
            g.limit() == 0 ? ")" : ", at most " + std::to_string(g.limit()) + ")";
        return "range(" + keys(g.key(), g.range_end()) + limit;
    }
    return "(" + shown(r.request_txn()) + ")";
}

template <class All>
void append(std::string& out, const char* before, const All& all, const char* between) {
    const char* comes = before;
    for (const auto& one : all) {
        out += (out.empty() && comes == before ? comes + 1 : comes) + shown(one);
        comes = between;
    }
}

inline std::string shown(const rpc::TxnRequest& t) {
    std::string out;
    append(out, " if ", t.compare(), " and ");
    append(out, " then ", t.success(), ", ");
    append(out, " else ", t.failure(), ", ");
    return out;
}

/// "Lease/LeaseGrant ttl 10", "KV/Txn if ... then ... else ..."; of others the path only.
inline std::string shown(std::string_view path, const std::string& message) {
    std::string out(path.substr(path.find('.') + 1));
    rpc::TxnRequest txn;
    rpc::LeaseGrantRequest grant;
    if (out == "KV/Txn" && txn.ParseFromString(message)) return out + " " + shown(txn);
    if (out == "Lease/LeaseGrant" && grant.ParseFromString(message))
        out += " ttl " + std::to_string(grant.ttl());
    return out;
}

}  // namespace holdfast::test
