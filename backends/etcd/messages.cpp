#include "messages.hpp"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <charconv>

#include "errors.hpp"

namespace holdfast::etcd {
namespace {

namespace js = boost::json;

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned char no_digit = 64;

constexpr std::array<unsigned char, 256> values_of_digits() {
    std::array<unsigned char, 256> out{};
    out.fill(no_digit);
    for (std::size_t i = 0; i < digits.size(); ++i)
        out[static_cast<unsigned char>(digits[i])] = static_cast<unsigned char>(i);
    return out;
}
constexpr auto values = values_of_digits();

void member(std::string& out, std::string_view name, std::string_view text) {
    out += out.back() == '{' ? "\"" : ",\"";
    out += name;
    out += "\":\"";
    out += text;
    out += '"';
}

std::string comparison(std::string_view key, std::string_view end, std::string_view target,
                       std::string_view name, std::string_view value,
                       std::string_view result = "EQUAL") {
    std::string out = "{";
    member(out, "key", base64(key));
    if (!end.empty()) member(out, "range_end", base64(end));
    member(out, "target", target);
    member(out, "result", result);
    member(out, name, value);
    return out + "}";
}

std::string request(std::string_view kind, const std::string& body) {
    return "{\"request_" + std::string(kind) + "\":" + body + "}";
}

void list(std::string& out, std::string_view name, const std::vector<std::string>& parts) {
    if (parts.empty()) return;
    out += out.back() == '{' ? "\"" : ",\"";
    out += name;
    out += "\":[";
    for (const std::string& part : parts) {
        if (&part != &parts.front()) out += ',';
        out += part;
    }
    out += ']';
}

Result read_results(const js::object& from) {
    Result out;
    out.succeeded = flag(from, "succeeded");
    const js::array* all = array(from, "responses");
    if (all == nullptr) return out;
    for (const js::value& one : *all) {
        Result r;
        if (const js::object* o = one.if_object()) {
            if (const js::object* range = object(*o, "response_range")) r = read_range(*range);
            if (const js::object* txn = object(*o, "response_txn")) r = read_results(*txn);
            if (const js::object* gone = object(*o, "response_delete_range")) {
                if (const js::array* were = array(*gone, "prev_kvs"))
                    for (const js::value& kv : *were)
                        if (kv.is_object()) r.found.push_back(read_key_value(kv.get_object()));
            }
        }
        out.results.push_back(std::move(r));
    }
    return out;
}

}  // namespace

std::string was_created(std::string_view key, std::int64_t revision) {
    return comparison(key, {}, "CREATE", "create_revision", std::to_string(revision));
}
std::string was_modified(std::string_view key, std::int64_t revision) {
    return comparison(key, {}, "MOD", "mod_revision", std::to_string(revision));
}
std::string has_value(std::string_view key, std::string_view value) {
    return comparison(key, {}, "VALUE", "value", base64(value));
}
std::string none_in(std::string_view begin, std::string_view end) {
    return comparison(begin, end, "CREATE", "create_revision", "0");
}
std::string all_above(std::string_view begin, std::string_view end, std::string_view value) {
    return comparison(begin, end, "VALUE", "value", base64(value), "GREATER");
}
std::string all_below(std::string_view begin, std::string_view end, std::string_view value) {
    return comparison(begin, end, "VALUE", "value", base64(value), "LESS");
}

std::string put(std::string_view key, std::string_view value, std::int64_t lease) {
    std::string out = "{";
    member(out, "key", base64(key));
    member(out, "value", base64(value));
    member(out, "lease", std::to_string(lease));
    return request("put", out + "}");
}
std::string put_value(std::string_view key, std::string_view value) {
    std::string out = "{";
    member(out, "key", base64(key));
    member(out, "value", base64(value));
    return request("put", out + ",\"ignore_lease\":true}");
}
std::string put_lease(std::string_view key, std::int64_t lease) {
    std::string out = "{";
    member(out, "key", base64(key));
    member(out, "lease", std::to_string(lease));
    return request("put", out + ",\"ignore_value\":true}");
}
std::string range(std::string_view begin, std::string_view end) {
    return request("range", range_alone(begin, end, 0, false));
}
std::string range_alone(std::string_view begin, std::string_view end, std::int64_t limit,
                        bool keys_only) {
    std::string out = "{";
    member(out, "key", base64(begin));
    if (!end.empty()) member(out, "range_end", base64(end));
    if (limit != 0) member(out, "limit", std::to_string(limit));
    if (keys_only) out += ",\"keys_only\":true";
    return out + "}";
}
std::string deletion(std::string_view begin, std::string_view end, bool and_tell) {
    std::string out = "{";
    member(out, "key", base64(begin));
    if (!end.empty()) member(out, "range_end", base64(end));
    return request("delete_range", out + (and_tell ? ",\"prev_kv\":true}" : "}"));
}

std::string Transaction::text() const {
    std::string out = "{";
    list(out, "compare", compare);
    list(out, "success", success);
    list(out, "failure", failure);
    return out + "}";
}
std::string Transaction::nested() const {
    return request("txn", text());
}

error_code read_answer(unsigned http_status, std::string_view bytes, js::object& out,
                       std::string& words) {
    boost::system::error_code bad;
    auto value = js::parse(bytes.substr(0, bytes.find('\n')), bad);
    js::object* all = bad ? nullptr : value.if_object();
    if (all == nullptr) return make(http_status == 404 ? Error::too_old : Error::protocol);
    const js::object* error = object(*all, "error");
    if (http_status == 200 && error == nullptr) {
        if (auto* inner = all->if_contains("result"); inner != nullptr && inner->is_object())
            out = std::move(inner->get_object());
        else
            out = std::move(*all);
        return object(out, "header") != nullptr ? error_code() : make(Error::protocol);
    }
    const js::object& said = error != nullptr ? *error : *all;
    words = text(said, "message");
    if (words.empty()) words = text(*all, "error");
    return from_answer(number(said, error != nullptr ? "grpc_code" : "code"), http_status, words);
}

Result read_transaction(const js::object& from) {
    return read_results(from);
}

Result read_range(const js::object& from) {
    Result out;
    out.more = flag(from, "more");
    if (const js::array* all = array(from, "kvs"))
        for (const js::value& kv : *all)
            if (kv.is_object()) out.found.push_back(read_key_value(kv.get_object()));
    return out;
}

std::int64_t revision_of(const js::object& answer) {
    const js::object* header = object(answer, "header");
    return header == nullptr ? 0 : number(*header, "revision");
}

std::string cluster_of(const js::object& answer) {
    const js::object* header = object(answer, "header");
    return header == nullptr ? std::string() : text(*header, "cluster_id");
}

KeyValue read_key_value(const js::object& kv) {
    KeyValue out;
    out.key = from_base64(text(kv, "key"));
    out.value = from_base64(text(kv, "value"));
    out.created = number(kv, "create_revision");
    out.modified = number(kv, "mod_revision");
    out.lease = number(kv, "lease");
    return out;
}

std::int64_t number(const js::object& from, std::string_view name) {
    const js::value* v = from.if_contains(name);
    if (v == nullptr) return 0;
    if (v->is_int64()) return v->get_int64();
    std::int64_t n = 0;
    if (v->is_string())
        std::from_chars(v->get_string().data(), v->get_string().data() + v->get_string().size(), n);
    return n;
}

const js::object* object(const js::object& from, std::string_view name) {
    const js::value* v = from.if_contains(name);
    return v == nullptr ? nullptr : v->if_object();
}

const js::array* array(const js::object& from, std::string_view name) {
    const js::value* v = from.if_contains(name);
    return v == nullptr ? nullptr : v->if_array();
}

std::string text(const js::object& from, std::string_view name) {
    const js::value* v = from.if_contains(name);
    if (v == nullptr || !v->is_string()) return {};
    return std::string(v->get_string().data(), v->get_string().size());
}

bool flag(const js::object& from, std::string_view name) {
    const js::value* v = from.if_contains(name);
    return v != nullptr && v->is_bool() && v->get_bool();
}

std::string base64(std::string_view bytes) {
    std::string out((bytes.size() + 2) / 3 * 4, '=');
    char* to = out.data();
    const auto byte = [&](std::size_t at) {
        return unsigned{static_cast<unsigned char>(bytes[at])};
    };
    std::size_t i = 0;
    for (; i + 3 <= bytes.size(); i += 3) {
        const unsigned group = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
        *to++ = digits[group >> 18U];
        *to++ = digits[group >> 12U & 63U];
        *to++ = digits[group >> 6U & 63U];
        *to++ = digits[group & 63U];
    }
    if (i == bytes.size()) return out;
    const bool two = i + 2 == bytes.size();
    const unsigned group = byte(i) << 16U | (two ? byte(i + 1) << 8U : 0U);
    *to++ = digits[group >> 18U];
    *to++ = digits[group >> 12U & 63U];
    if (two) *to = digits[group >> 6U & 63U];
    return out;
}

std::string from_base64(std::string_view text) {
    std::string out;
    out.reserve(text.size() / 4 * 3);
    unsigned group = 0, bits = 0;
    for (const char c : text) {
        const unsigned value = values[static_cast<unsigned char>(c)];
        if (value == no_digit) break;
        group = group << 6U | value;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out += static_cast<char>(group >> bits & 255U);
    }
    return out;
}

}  // namespace holdfast::etcd
