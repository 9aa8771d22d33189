#include "messages.hpp"

#include <etcd.pb.h>

namespace holdfast::etcd {
namespace {

/// The key and the end of a range, in any message that has both. Texts are assigned, since
/// set_key() makes another string first.
template <class Message>
void set_keys(Message& m, const Keys& keys) {
    *m.mutable_key() = keys.begin;
    if (keys.prefix) {
        *m.mutable_range_end() = keys.begin;
        char& end = m.mutable_range_end()->back();
        end = static_cast<char>(end + 1);  // of '/' or printable: never the last
    } else if (!keys.end.empty()) {
        *m.mutable_range_end() = keys.end;
    }
}

rpc::Compare& comparison(rpc::TxnRequest& to, const Keys& keys, rpc::Compare::Target target,
                         rpc::Compare::Result result = rpc::Compare::EQUAL) {
    rpc::Compare& c = *to.add_compare();
    c.set_target(target);
    c.set_result(result);
    set_keys(c, keys);
    return c;
}

void compare_value(rpc::TxnRequest& to, const Keys& keys, std::string_view value,
                   rpc::Compare::Result result) {
    *comparison(to, keys, rpc::Compare::VALUE, result).mutable_value() = value;
}

template <class All>
void read_all(const All& from, std::vector<KeyValue>& to) {
    to.reserve(static_cast<std::size_t>(from.size()));
    for (const rpc::KeyValue& kv : from)
        to.push_back(read_key_value(kv));
}

}  // namespace

void Transaction::if_created(std::string_view key, std::int64_t revision) {
    comparison(*to_, key, rpc::Compare::CREATE).set_create_revision(revision);
}
void Transaction::if_modified(std::string_view key, std::int64_t revision) {
    comparison(*to_, key, rpc::Compare::MOD).set_mod_revision(revision);
}
void Transaction::if_value(std::string_view key, std::string_view value) {
    compare_value(*to_, key, value, rpc::Compare::EQUAL);
}
void Transaction::if_none(const Keys& keys) {
    comparison(*to_, keys, rpc::Compare::CREATE).set_create_revision(0);
}
void Transaction::if_all_above(const Keys& keys, std::string_view value) {
    compare_value(*to_, keys, value, rpc::Compare::GREATER);
}
void Transaction::if_all_below(const Keys& keys, std::string_view value) {
    compare_value(*to_, keys, value, rpc::Compare::LESS);
}

rpc::RequestOp& Requests::add() {
    return success_ ? *to_->add_success() : *to_->add_failure();
}
void Requests::put(std::string_view key, std::string_view value, std::int64_t lease) {
    rpc::PutRequest& put = *add().mutable_request_put();
    *put.mutable_key() = key;
    *put.mutable_value() = value;
    put.set_lease(lease);
}
void Requests::put_value(std::string_view key, std::string_view value) {
    rpc::PutRequest& put = *add().mutable_request_put();
    *put.mutable_key() = key;
    *put.mutable_value() = value;
    put.set_ignore_lease(true);
}
void Requests::put_lease(std::string_view key, std::int64_t lease) {
    rpc::PutRequest& put = *add().mutable_request_put();
    *put.mutable_key() = key;
    put.set_lease(lease);
    put.set_ignore_value(true);
}
void Requests::range(const Keys& keys, std::int64_t limit) {
    rpc::RangeRequest& range = *add().mutable_request_range();
    set_keys(range, keys);
    range.set_limit(limit);
}
void Requests::remove(const Keys& keys, bool and_tell) {
    rpc::DeleteRangeRequest& deletion = *add().mutable_request_delete_range();
    set_keys(deletion, keys);
    deletion.set_prev_kv(and_tell);
}
Transaction Requests::transaction() {
    return Transaction(*add().mutable_request_txn());
}

Result read_transaction(const rpc::TxnResponse& from) {
    Result out;
    out.succeeded = from.succeeded();
    out.results.reserve(static_cast<std::size_t>(from.responses_size()));
    for (const rpc::ResponseOp& one : from.responses()) {
        Result r;
        if (one.has_response_range()) r = read_range(one.response_range());
        if (one.has_response_txn()) r = read_transaction(one.response_txn());
        if (one.has_response_delete_range())
            read_all(one.response_delete_range().prev_kvs(), r.found);
        out.results.push_back(std::move(r));
    }
    return out;
}

Result read_range(const rpc::RangeResponse& from) {
    Result out;
    out.more = from.more();
    read_all(from.kvs(), out.found);
    return out;
}

KeyValue read_key_value(const rpc::KeyValue& kv) {
    return {kv.key(), kv.value(), kv.create_revision(), kv.mod_revision(), kv.lease()};
}

}  // namespace holdfast::etcd
