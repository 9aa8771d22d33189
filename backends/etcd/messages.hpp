// Messages of etcd's v3 gateway as values: JSON, with keys and values in base64 and 64-bit numbers
// as text (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/). No sockets.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"

namespace holdfast::etcd {

struct KeyValue {
    std::string key, value;
    std::int64_t created = 0, modified = 0, lease = 0;
};

// --- parts of a transaction
std::string was_created(std::string_view key, std::int64_t revision);  ///< 0: it is missing
std::string was_modified(std::string_view key, std::int64_t revision);
std::string has_value(std::string_view key, std::string_view value);
std::string none_in(std::string_view begin, std::string_view end);  ///< no key of this range exists
/// The range has a key, and the values of all its keys are above (below) `value`, and not equal.
std::string all_above(std::string_view begin, std::string_view end, std::string_view value);
std::string all_below(std::string_view begin, std::string_view end, std::string_view value);
std::string put(std::string_view key, std::string_view value, std::int64_t lease);
std::string put_value(std::string_view key, std::string_view value);   ///< the lease stays
std::string put_lease(std::string_view key, std::int64_t lease);       ///< the value stays
std::string range(std::string_view begin, std::string_view end = {});  ///< no end: one key
/// No end: one key. `and_tell`: returns what was deleted.
std::string deletion(std::string_view begin, std::string_view end = {}, bool and_tell = false);

/// Compares, then does one list of requests or the other.
struct Transaction {
    std::vector<std::string> compare, success, failure;
    std::string text() const;
    /// As a request inside another transaction. All comparisons come before all requests, including
    /// those of nested transactions.
    std::string nested() const;
};

/// A range as a request of its own. No limit: 0.
std::string range_alone(std::string_view begin, std::string_view end, std::int64_t limit,
                        bool keys_only);

// --- answers
/// What a member has answered to a request, or the error that it answered with, and its words. A
/// stream answers with a line for each message; the first one counts.
error_code read_answer(unsigned http_status, std::string_view bytes, boost::json::object& out,
                       std::string& words);
/// The result of one request. Results keep the order of the requests.
struct Result {
    std::vector<KeyValue> found;  ///< of a range, or what was deleted
    bool more = false;
    bool succeeded = false;       ///< of a transaction
    std::vector<Result> results;  ///< of a transaction
};
/// Result of the whole transaction.
Result read_transaction(const boost::json::object&);
Result read_range(const boost::json::object&);
/// The revision of the store when it answered.
std::int64_t revision_of(const boost::json::object&);
/// The identity of its cluster; empty: the answer has none.
std::string cluster_of(const boost::json::object&);
KeyValue read_key_value(const boost::json::object&);
/// A number; it may be text, or missing (0).
std::int64_t number(const boost::json::object&, std::string_view name);
/// Null: it is missing.
const boost::json::object* object(const boost::json::object&, std::string_view name);
const boost::json::array* array(const boost::json::object&, std::string_view name);
std::string text(const boost::json::object&, std::string_view name);
bool flag(const boost::json::object&, std::string_view name);

std::string base64(std::string_view);
std::string from_base64(std::string_view);  ///< ends at the first invalid character

}  // namespace holdfast::etcd
