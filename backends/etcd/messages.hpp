// What is asked of etcd in a transaction, and what it answers, as values. No sockets.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"

namespace holdfast::etcd {

namespace rpc {
class KeyValue;
class RangeResponse;
class RequestOp;
class TxnRequest;
class TxnResponse;
}  // namespace rpc

struct KeyValue {
    std::string key, value;
    std::int64_t created = 0, modified = 0, lease = 0;
};

/// One key, or a range.
struct Keys {
    Keys(std::string_view key) : begin(key) {}
    Keys(const std::string& key) : begin(key) {}
    /// No end: one key.
    Keys(std::string_view b, std::string_view e) : begin(b), end(e) {}
    /// All that begin so.
    static Keys below(std::string_view prefix) {
        Keys k(prefix);
        k.prefix = true;
        return k;
    }
    std::string_view begin, end;
    bool prefix = false;
};

class Transaction;

/// What a transaction does, in this order.
class Requests {
public:
    void put(std::string_view key, std::string_view value, std::int64_t lease);
    void put_value(std::string_view key, std::string_view value);  ///< the lease stays
    void put_lease(std::string_view key, std::int64_t lease);      ///< the value stays
    void range(const Keys&, std::int64_t limit = 0);  ///< the first ones in order; 0: all
    /// `and_tell`: returns what was deleted.
    void remove(const Keys&, bool and_tell = false);
    /// All comparisons, also those of nested transactions, are made before all requests.
    Transaction transaction();

private:
    friend class Transaction;
    Requests(rpc::TxnRequest& to, bool success) : to_(&to), success_(success) {}
    rpc::RequestOp& add();
    rpc::TxnRequest* to_;
    bool success_;
};

/// Compares, then does one list of requests or the other. Refers to the message that it fills.
class Transaction {
public:
    explicit Transaction(rpc::TxnRequest& to) : to_(&to) {}

    // --- comparisons, all of which must be true
    void if_created(std::string_view key, std::int64_t revision);  ///< 0: it is missing
    void if_modified(std::string_view key, std::int64_t revision);
    void if_value(std::string_view key, std::string_view value);
    void if_none(const Keys&);  ///< no key of this range exists
    /// The range has a key, and the values of all its keys are above (below) `value`, and not
    /// equal.
    void if_all_above(const Keys&, std::string_view value);
    void if_all_below(const Keys&, std::string_view value);

    Requests then() { return {*to_, true}; }
    Requests otherwise() { return {*to_, false}; }

private:
    rpc::TxnRequest* to_;
};

/// The result of one request. Results keep the order of the requests.
struct Result {
    std::vector<KeyValue> found;  ///< of a range, or what was deleted
    bool more = false;
    bool succeeded = false;       ///< of a transaction
    std::vector<Result> results;  ///< of a transaction
};
/// Result of the whole transaction.
Result read_transaction(const rpc::TxnResponse&);
Result read_range(const rpc::RangeResponse&);
KeyValue read_key_value(const rpc::KeyValue&);

}  // namespace holdfast::etcd
