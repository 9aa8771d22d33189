#include "entering.hpp"

#include <map>
#include <set>

#include "marks.hpp"

namespace holdfast::etcd {
namespace {

using What = Entered::Outcome;

bool lists(const OwnerState& p, const Entering& e) {
    return e.list || p.units.permits();
}

/// Its key is made, whoever else is there.
bool stands_in_line(const OwnerState& p, const Entering& e) {
    return e.queue || p.units.permits();
}

bool is_reader(const OwnerState& p) {
    return p.units.mode == Mode::shared;
}

void all_beside(const OwnerState& p, Transaction& t) {
    const std::string begin = compatible_prefix(p.units);
    t.compare.push_back(all_above(p.line, after(p.line), begin));
    t.compare.push_back(all_below(p.line, after(p.line), after(begin)));
}

}  // namespace

std::string proper_name(const OwnerState& p) {
    const std::string name = name_key(p.line);
    return p.units.permits() ? has_value(name, permits_marker) : was_created(name, 0);
}

bool is_proper(const OwnerState& p, const std::vector<KeyValue>& at_name) {
    if (!p.units.permits()) return at_name.empty();
    return !at_name.empty() && at_name.front().value == permits_marker;
}

Transaction entering(const OwnerState& p, const Entering& e) {
    const std::string alone = name_key(p.line), key = put(p.key, p.value, e.lease);
    const std::string alive = was_created(p.tombstone, 0), absent = was_created(p.key, 0);
    Transaction stands;
    stands.compare = {alive, proper_name(p), absent};
    if (p.units.permits()) all_beside(p, stands);
    stands.success = {key};
    stands.failure = {range(p.key), range(alone)};

    Transaction t;
    t.compare = {alive, was_created(alone, 0), none_in(p.line, after(p.line))};
    t.success = {key};
    if (p.units.permits()) t.success.push_back(put(alone, permits_marker, 0));
    add_grant(p, t);
    t.failure = stands.failure;
    if (stands_in_line(p, e)) t.failure = {stands.nested()};
    if (is_reader(p)) {
        Transaction readers;
        readers.compare = {alive, proper_name(p), absent};
        all_beside(p, readers);
        readers.success = {key};
        add_grant(p, readers);
        readers.failure = std::move(t.failure);
        t.failure = {readers.nested()};
    }
    if (lists(p, e)) t.failure.push_back(range(p.line, after(p.line)));
    return t;
}

Entered read_entering(const OwnerState& p, const Entering& e, const Result& whole) {
    Entered out;
    const Result* at = &whole;
    const auto granted = [&] {
        out.outcome = What::granted;
        out.previous = read_grant(p, *at);
        return out;
    };
    if (at->succeeded) return granted();
    const std::size_t inner = is_reader(p) || stands_in_line(p, e) ? 1 : 2;
    if (at->results.size() != inner + (lists(p, e) ? 1U : 0U)) return out;
    if (lists(p, e)) out.line = &at->results.back().found;
    if (is_reader(p)) {
        at = &at->results.front();
        if (at->succeeded) return granted();
    }
    if (stands_in_line(p, e)) {
        if (at->results.empty()) return out;
        at = &at->results.front();
        if (at->succeeded) {
            out.outcome = What::made;
            return out;
        }
    }
    if (at->results.size() < 2) return out;
    const std::vector<KeyValue>&own = at->results[0].found, &name = at->results[1].found;
    const bool marked = !name.empty() && name.front().value == permits_marker;
    if (!own.empty()) {
        out.outcome = What::stands;
        out.found = own.front();
    } else if (marked && !(p.units.permits() && !out.line->empty())) {
        out.outcome = What::marked;
        out.found = name.front();
    } else if (!name.empty() && !marked) {
        out.outcome = What::foreign;
    } else if (p.units.permits() && !out.line->empty()) {
        out.outcome = What::other_kind;
    } else {
        out.outcome = stands_in_line(p, e) ? What::left : What::busy;
    }
    return out;
}

Transaction clearing(const OwnerState& p, std::int64_t marker_created) {
    const std::string alone = name_key(p.line);
    Transaction t;
    t.compare = {was_created(alone, marker_created), none_in(p.line, after(p.line))};
    t.success = {deletion(alone)};
    t.failure = {range(alone)};
    return t;
}

bool is_clear(const Result& r, std::int64_t marker_created) {
    if (r.succeeded || r.results.empty() || r.results.front().found.empty()) return true;
    return r.results.front().found.front().created != marker_created;
}

void add_leaving(const std::vector<const OwnerState*>& all, std::vector<Transaction>& requests) {
    constexpr char first = ' ';  // of what a key is made of: the key after one has it at least
    std::map<std::string, std::set<std::string>> keys;
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i]->units.permits()) continue;
        keys[all[i]->line].insert(all[i]->key);
        last[all[i]->line] = i;
    }
    for (const auto& [line, leaving] : keys) {
        const std::string alone = name_key(line);
        Transaction t;
        t.compare = {has_value(alone, permits_marker)};
        std::string from = line;
        for (const std::string& key : leaving) {
            t.compare.push_back(none_in(from, key));
            from = key + first;
        }
        t.compare.push_back(none_in(from, after(line)));
        t.success = {deletion(alone)};
        requests[last[line]].success.push_back(t.nested());
    }
}

}  // namespace holdfast::etcd
