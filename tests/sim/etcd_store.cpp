#include "etcd_store.hpp"

#include <algorithm>
#include <boost/beast/core/detail/base64.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <utility>

namespace holdfast::sim {
namespace {

namespace js = boost::json;

constexpr int invalid = 3, not_found = 5;

bool flag(const js::object& o, std::string_view name) {
    const js::value* v = o.if_contains(name);
    return v != nullptr && v->is_bool() && v->get_bool();
}

const js::array& list(const js::object& o, std::string_view name) {
    static const js::array none;
    const js::value* v = o.if_contains(name);
    return v != nullptr && v->is_array() ? v->get_array() : none;
}

js::object shown(const std::string& key, const EtcdStore::Key& k, bool with_value = true) {
    js::object out;
    out["key"] = base64(key);
    if (k.created != 0) out["create_revision"] = std::to_string(k.created);
    if (k.modified != 0) out["mod_revision"] = std::to_string(k.modified);
    if (k.version != 0) out["version"] = std::to_string(k.version);
    if (with_value && !k.value.empty()) out["value"] = base64(k.value);
    if (k.lease != 0) out["lease"] = std::to_string(k.lease);
    return out;
}

/// The keys from `begin` up to `end`; the one alone without an end; all later ones up to "\0".
template <class Keys>
auto bounds(Keys& keys, const std::string& begin, const std::string& end) {
    const auto from = keys.lower_bound(begin);
    if (end.empty())
        return std::pair(from, from != keys.end() && from->first == begin ? std::next(from) : from);
    if (end == std::string(1, '\0')) return std::pair(from, keys.end());
    return std::pair(from, end <= begin ? from : keys.lower_bound(end));
}

template <class T>
bool compares(std::string_view result, const T& has, const T& asked) {
    if (result.empty() || result == "EQUAL") return has == asked;
    if (result == "GREATER") return has > asked;
    if (result == "LESS") return has < asked;
    if (result == "NOT_EQUAL") return has != asked;
    throw std::runtime_error("etcd: no comparison: " + std::string(result));
}

js::object revision_only(std::int64_t revision) {
    js::object header;
    header["revision"] = std::to_string(revision);
    return header;
}

}  // namespace

const js::object* object_in(const js::object& o, std::string_view name) {
    const js::value* v = o.if_contains(name);
    return v == nullptr ? nullptr : v->if_object();
}

std::string text_in(const js::object& o, std::string_view name) {
    const js::value* v = o.if_contains(name);
    if (v == nullptr || !v->is_string()) return {};
    return {v->get_string().data(), v->get_string().size()};
}

std::int64_t number_in(const js::object& o, std::string_view name) {
    const js::value* v = o.if_contains(name);
    if (v != nullptr && v->is_int64()) return v->get_int64();
    const std::string digits = text_in(o, name);
    std::int64_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
}

namespace codec = boost::beast::detail::base64;

std::string base64(std::string_view bytes) {
    std::string out(codec::encoded_size(bytes.size()), '\0');
    out.resize(codec::encode(out.data(), bytes.data(), bytes.size()));
    return out;
}

std::string bytes_in(const js::object& o, std::string_view name) {
    const std::string text = text_in(o, name);
    std::string out(codec::decoded_size(text.size()), '\0');
    out.resize(codec::decode(out.data(), text.data(), text.size()).first);
    return out;
}

/// A transaction with its branch chosen: all comparisons come before all requests.
struct EtcdStore::Plan {
    bool succeeded = true;
    const js::array* requests = nullptr;
    std::vector<Plan> nested;  ///< those of its requests that are transactions, in their order
};

EtcdStore::Plan EtcdStore::plan(const js::object& txn) const {
    Plan out;
    for (const js::value& c : list(txn, "compare"))
        out.succeeded = out.succeeded && holds(c.as_object());
    out.requests = &list(txn, out.succeeded ? "success" : "failure");
    for (const js::value& r : *out.requests)
        if (const js::object* inner = object_in(r.as_object(), "request_txn"))
            out.nested.push_back(plan(*inner));
    return out;
}

bool EtcdStore::holds(const js::object& c) const {
    const auto [from, to] = bounds(keys, bytes_in(c, "key"), bytes_in(c, "range_end"));
    const std::string target = text_in(c, "target"), result = text_in(c, "result");
    const auto one = [&](const Key& k) {
        if (target == "VALUE") return compares(result, k.value, bytes_in(c, "value"));
        if (target == "CREATE") return compares(result, k.created, number_in(c, "create_revision"));
        if (target == "MOD") return compares(result, k.modified, number_in(c, "mod_revision"));
        if (target.empty() || target == "VERSION")
            return compares(result, k.version, number_in(c, "version"));
        if (target == "LEASE") return compares(result, k.lease, number_in(c, "lease"));
        throw std::runtime_error("etcd: no target: " + target);
    };
    // What is not there has no value that could be compared.
    if (from == to) return target != "VALUE" && one(Key());
    return std::all_of(from, to, [&](const auto& entry) { return one(entry.second); });
}

/// No transaction writes a key twice, whichever of its branches are taken.
struct EtcdStore::Written {
    std::set<std::string, std::less<>> puts;
    std::vector<std::pair<std::string, std::string>> deletions;  ///< ranges

    void put(const std::string& key) {
        for (const auto& [begin, end] : deletions)
            if (end.empty() ? key == begin : begin <= key && key < end) refuse();
        if (!puts.insert(key).second) refuse();
    }
    [[noreturn]] static void refuse() {
        throw EtcdError(invalid, "etcdserver: duplicate key given in txn request");
    }
};

EtcdStore::Written EtcdStore::written(const js::array& requests) {
    Written out;
    for (const js::value& r : requests)
        if (const js::object* gone = object_in(r.as_object(), "request_delete_range"))
            out.deletions.emplace_back(bytes_in(*gone, "key"), bytes_in(*gone, "range_end"));
    for (const js::value& r : requests)
        if (const js::object* inner = object_in(r.as_object(), "request_txn")) {
            const Written then = written(list(*inner, "success")),
                          otherwise = written(list(*inner, "failure"));
            for (const std::string& key : then.puts)
                out.put(key);
            for (const std::string& key : otherwise.puts)
                if (!then.puts.contains(key)) out.put(key);
            for (const Written* w : {&then, &otherwise})
                out.deletions.insert(out.deletions.end(), w->deletions.begin(), w->deletions.end());
        }
    for (const js::value& r : requests)
        if (const js::object* put_ = object_in(r.as_object(), "request_put"))
            out.put(bytes_in(*put_, "key"));
    return out;
}

/// What would fail half-way is refused before anything is done.
void EtcdStore::check(const Plan& p) const {
    auto inner = p.nested.begin();
    for (const js::value& r : *p.requests) {
        if (object_in(r.as_object(), "request_txn") != nullptr) {
            check(*inner++);
            continue;
        }
        const js::object* put = object_in(r.as_object(), "request_put");
        if (put == nullptr) continue;
        const bool known = keys.contains(bytes_in(*put, "key"));
        if ((flag(*put, "ignore_value") || flag(*put, "ignore_lease")) && !known)
            throw EtcdError(invalid, "etcdserver: key not found");
        const auto id = number_in(*put, "lease");
        if (id != 0 && lease(id) == nullptr)
            throw EtcdError(not_found, "etcdserver: requested lease not found");
    }
}

js::object EtcdStore::transaction(const js::object& txn) {
    for (const char* branch : {"success", "failure"})
        written(list(txn, branch));
    const Plan chosen = plan(txn);
    check(chosen);
    Changes changes{revision + 1, {}};
    js::object out = execute(chosen, changes);
    keep(changes);
    out["header"] = header();
    return out;
}

js::object EtcdStore::execute(const Plan& p, Changes& changes) {
    js::object out;
    if (p.succeeded) out["succeeded"] = true;
    js::array responses;
    auto inner = p.nested.begin();
    for (const js::value& v : *p.requests) {
        const js::object& r = v.as_object();
        js::object response;
        if (const js::object* put_ = object_in(r, "request_put"))
            response["response_put"] = put(*put_, changes);
        else if (const js::object* range_ = object_in(r, "request_range"))
            response["response_range"] = range(*range_);
        else if (const js::object* gone = object_in(r, "request_delete_range"))
            response["response_delete_range"] = delete_range(*gone, changes);
        else if (object_in(r, "request_txn") != nullptr)
            response["response_txn"] = execute(*inner++, changes);
        else
            throw std::runtime_error("etcd: an unknown request in a transaction");
        const std::int64_t at = changes.events.empty() ? revision : changes.revision;
        response.begin()->value().as_object()["header"] = revision_only(at);
        responses.push_back(std::move(response));
    }
    if (!responses.empty()) out["responses"] = std::move(responses);
    return out;
}

js::object EtcdStore::put(const js::object& r, Changes& changes) {
    const std::string name = bytes_in(r, "key");
    Key& k = keys[name];
    const std::int64_t asked = flag(r, "ignore_lease") ? k.lease : number_in(r, "lease");
    if (!flag(r, "ignore_value")) k.value = bytes_in(r, "value");
    if (k.version++ == 0) {
        k.created = changes.revision;
        if (asked_for) asked_for(name, true);
    }
    k.modified = changes.revision;
    if (k.lease != asked) {
        if (const auto old = leases.find(k.lease); old != leases.end())
            old->second.keys.erase(name);
        if (asked != 0) leases.at(asked).keys.insert(name);
        k.lease = asked;
    }
    changes.events.push_back({changes.revision, name, k});
    return {};
}

js::object EtcdStore::delete_range(const js::object& r, Changes& changes) {
    auto [from, to] = bounds(keys, bytes_in(r, "key"), bytes_in(r, "range_end"));
    if (asked_for && bytes_in(r, "range_end").empty()) asked_for(bytes_in(r, "key"), false);
    js::object out;
    js::array were;
    const auto count = std::distance(from, to);
    if (count != 0) out["deleted"] = std::to_string(count);
    while (from != to) {
        if (flag(r, "prev_kv")) were.push_back(shown(from->first, from->second));
        remove(from++, changes);
    }
    if (!were.empty()) out["prev_kvs"] = std::move(were);
    return out;
}

void EtcdStore::remove(std::map<std::string, Key, std::less<>>::iterator at, Changes& changes) {
    if (const auto l = leases.find(at->second.lease); l != leases.end())
        l->second.keys.erase(at->first);
    changes.events.push_back({changes.revision, at->first, Key{{}, 0, changes.revision, 0, 0}});
    keys.erase(at);
}

void EtcdStore::keep(Changes& changes) {
    if (changes.events.empty()) return;
    revision = changes.revision;
    std::move(changes.events.begin(), changes.events.end(), std::back_inserter(history));
}

js::object EtcdStore::range(const js::object& r) const {
    const auto [from, to] = bounds(keys, bytes_in(r, "key"), bytes_in(r, "range_end"));
    const auto count = std::distance(from, to);
    const std::int64_t limit = number_in(r, "limit");
    js::object out;
    js::array all;
    for (auto at = from; at != to; ++at) {
        if (limit != 0 && static_cast<std::int64_t>(all.size()) == limit) break;
        all.push_back(shown(at->first, at->second, !flag(r, "keys_only")));
    }
    if (static_cast<std::int64_t>(all.size()) < count) out["more"] = true;
    if (!all.empty()) out["kvs"] = std::move(all);
    if (count != 0) out["count"] = std::to_string(count);
    out["header"] = header();
    return out;
}

js::object EtcdStore::grant(const js::object& r) {
    const std::int64_t id = last_id_ += 7, asked = number_in(r, "TTL");
    Lease& l = leases[id];
    l.seconds = std::max(asked, shortest_lease);
    js::object out;
    out["header"] = header();
    out["ID"] = std::to_string(id);
    out["TTL"] = std::to_string(l.seconds);
    return out;
}

js::object EtcdStore::time_to_live(const js::object& r, std::int64_t seconds_left) const {
    const std::int64_t id = number_in(r, "ID");
    js::object out;
    out["header"] = header();
    out["ID"] = std::to_string(id);
    const Lease* l = lease(id);
    out["TTL"] = std::to_string(l == nullptr ? -1 : seconds_left);
    if (l != nullptr) out["grantedTTL"] = std::to_string(l->seconds);
    return out;
}

js::object EtcdStore::revoke(const js::object& r) {
    const std::int64_t id = number_in(r, "ID");
    if (lease(id) == nullptr) throw EtcdError(not_found, "etcdserver: requested lease not found");
    end(id);
    js::object out;
    out["header"] = header();
    return out;
}

js::object EtcdStore::keep_alive(const js::object& r) const {
    const std::int64_t id = number_in(r, "ID");
    js::object inner, out;
    inner["header"] = header();
    inner["ID"] = std::to_string(id);
    if (const Lease* l = lease(id)) inner["TTL"] = std::to_string(l->seconds);
    out["result"] = std::move(inner);
    return out;
}

void EtcdStore::end(std::int64_t id) {
    const auto l = leases.find(id);
    if (l == leases.end()) return;
    Changes changes{revision + 1, {}};
    for (const std::string& key : std::set(l->second.keys))
        if (const auto at = keys.find(key); at != keys.end()) remove(at, changes);
    leases.erase(l);
    keep(changes);
}

js::object EtcdStore::header() const {
    return revision_only(revision);
}

const EtcdStore::Key* EtcdStore::find(std::string_view key) const {
    const auto at = keys.find(key);
    return at == keys.end() ? nullptr : &at->second;
}

const EtcdStore::Lease* EtcdStore::lease(std::int64_t id) const {
    const auto at = leases.find(id);
    return at == leases.end() ? nullptr : &at->second;
}

js::array EtcdStore::events(std::string_view begin, std::string_view end, std::int64_t from) const {
    js::array out;
    for (const Event& e : history) {
        if (e.revision < from || e.key < begin || e.key >= end) continue;
        js::object event;
        if (e.now.version == 0) event["type"] = "DELETE";
        event["kv"] = shown(e.key, e.now);
        out.push_back(std::move(event));
    }
    return out;
}

}  // namespace holdfast::sim
