#include "nodes.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "errors.hpp"

namespace holdfast::redlock {
namespace {

/// The value of "key:" in the text of INFO.
std::string_view fact(std::string_view info, std::string_view key) noexcept {
    for (std::size_t at = 0; (at = info.find(key, at)) != info.npos; at += key.size()) {
        const bool line = at == 0 || info[at - 1] == '\n';
        if (!line || !info.substr(at + key.size()).starts_with(':')) continue;
        const auto rest = info.substr(at + key.size() + 1);
        return rest.substr(0, rest.find_first_of("\r\n"));
    }
    return {};
}

long long number(std::string_view text) noexcept {
    long long n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
}

bool too_old(std::string_view version) noexcept {
    const auto dot = version.find('.');
    const auto major = number(version);
    const auto minor = dot == version.npos ? 0 : number(version.substr(dot + 1));
    return major < 6 || (major == 6 && minor < 2);
}

std::string key_of_mark(const std::string& prefix) {
    std::string out;
    redis::sibling(out, prefix + "redlock", 'n');
    return out;
}

std::string seconds(boot_clock::duration d) {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(d).count()) + " s";
}

}  // namespace

// --- one node
// -----------------------------------------------------------------------------------

Node::Node(const spi::Settings& s, const spi::Endpoint& e, NodeSet& set, unsigned i)
    : index(i),
      shared(std::make_shared<redis::Shared>(node_settings(s, e))),
      where(text_of(e)),
      set_(set) {
    shared->greeting = this;
}

void Node::set_down(const error_code& why, const std::string& words) {
    {
        const std::lock_guard hold(mutex_);
        why_ = why;
        words_ = words;
    }
    down_.store(true, std::memory_order_relaxed);
}

error_code Node::why() const {
    const std::lock_guard hold(mutex_);
    return why_;
}

std::string Node::words(boot_clock::time_point now) const {
    if (!votes(now))
        return "started not long ago, and votes in " + seconds(votes_from_.load() - now);
    const std::lock_guard hold(mutex_);
    // What a connection says begins with its own place, which is in front of this already.
    std::string_view said = words_;
    for (const std::string_view place :
         {std::string_view(shared->options.display), std::string_view(where)})
        if (said.starts_with(place)) said.remove_prefix(place.size());
    while (said.starts_with(':') || said.starts_with(' '))
        said.remove_prefix(1);
    return said.empty() ? why_.message() : std::string(said);
}

unsigned Node::ask(std::string& out) {
    Command c;
    c.add("INFO").add("server");
    c.encode(out);
    c.clear();
    c.add("SET").add(set_.mark_key).add(set_.mark).add("NX");
    c.encode(out);
    c.clear();
    c.add("GET").add(set_.mark_key);
    c.encode(out);
    return 3;
}

error_code Node::answered(unsigned which, const Reply& r, std::string& detail) {
    if (which == 0) return introduced(r, detail);
    // A node that takes no writes at present can still be read, and be given releases.
    if (which == 1) return {};
    return marked(r, detail);
}

error_code Node::introduced(const Reply& info, std::string& detail) {
    if (info.is(Reply::Type::error)) {
        if (!set_.options.durable) {
            detail = std::string(redis::shown(info.text)) +
                     ": INFO is needed to notice a node that has restarted (or say durable=yes)";
            return redis::from_reply(info.text);
        }
        met_.store(true, std::memory_order_release);
        return {};
    }
    if (!info.is_text()) return redis::make(redis::Error::protocol);
    if (fact(info.text, "redis_mode") == "cluster") {
        detail = "this is a Redis Cluster";
        return redis::make(redis::Error::cluster);
    }
    const std::string_view version = fact(info.text, "redis_version");
    if (!version.empty() && too_old(version)) {
        detail = "the server is Redis " + std::string(version);
        return redis::make(redis::Error::too_old);
    }
    const std::string_view id = fact(info.text, "run_id");
    const std::string_view uptime = fact(info.text, "uptime_in_seconds");
    if (id.empty() || uptime.empty()) return redis::make(redis::Error::protocol);
    const auto now = boot_clock::now();
    const std::lock_guard hold(set_.mutex_);
    if (run_id_ != id) {
        run_id_ = id;
        // Whole seconds, rounded down: it started at the latest at the beginning of this one.
        const auto up = std::chrono::seconds(number(uptime));
        if (!set_.options.durable)
            votes_from_.store(now - up + set_.options.max_ttl + std::chrono::seconds(1));
        set_.judge();
    }
    met_.store(true, std::memory_order_release);
    return {};
}

error_code Node::marked(const Reply& r, std::string& detail) {
    if (r.is(Reply::Type::error)) {
        detail = redis::shown(r.text);
        return redis::from_reply(r.text);
    }
    const std::lock_guard hold(set_.mutex_);
    const bool right = r.is(Reply::Type::nil) || (r.is_text() && r.text == set_.mark);
    foreign_mark_ = right ? std::string() : r.is_text() ? r.text.substr(0, 400) : "?";
    set_.judge();
    if (right) return {};
    detail = set_.wrong_words_;
    return make(Error::other_nodes);
}

// --- all of them
// --------------------------------------------------------------------------------

NodeSet::NodeSet(const spi::Settings& s)
    : options(s), mark_key(key_of_mark(options.prefix)), mark("1:" + options.set) {
    unsigned i = 0;
    for (const spi::Endpoint& e : s.hosts)
        nodes.push_back(std::make_unique<Node>(s, e, *this, i++));
}

std::size_t NodeSet::up() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(nodes.begin(), nodes.end(), [](const auto& n) { return !n->down(); }));
}

bool NodeSet::answers() const noexcept {
    const auto there = [](const auto& n) { return n->met() && !n->down(); };
    return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), there)) >= quorum();
}

// A single wrong node is enough: two majorities need not meet in it.
void NodeSet::judge() {
    error_code why;
    std::string words;
    for (std::size_t i = 0; i < nodes.size() && !why; ++i) {
        if (!nodes[i]->foreign_mark_.empty()) {
            why = make(Error::other_nodes);
            words = nodes[i]->where + " is used with another set of nodes (" +
                    nodes[i]->foreign_mark_.substr(nodes[i]->foreign_mark_.find(':') + 1) +
                    "). All clients must name the same nodes in the same words, or give them one "
                    "node_set. If those clients are gone, delete the key " +
                    mark_key + " on every node";
        }
        for (std::size_t j = 0; j < i && !why; ++j) {
            if (nodes[i]->run_id_.empty() || nodes[i]->run_id_ != nodes[j]->run_id_) continue;
            why = make(Error::same_server);
            words = nodes[j]->where + " and " + nodes[i]->where + " are one server";
        }
    }
    wrong_why_ = why;
    wrong_words_ = words;
    wrong_.store(static_cast<bool>(why), std::memory_order_release);
}

error_code NodeSet::refused(std::string* detail) const {
    if (!wrong_.load(std::memory_order_acquire)) return {};
    const std::lock_guard hold(mutex_);
    *detail = wrong_words_;
    return wrong_why_;
}

std::uint64_t NodeSet::propose(boot_clock::time_point now) const {
    std::array<std::int64_t, 31> times{};
    std::size_t n = 0;
    for (const auto& node : nodes)
        if (node->met()) times[n++] = node->shared->clock.server_us(now);
    std::uint64_t proposal = 0;
    if (n > 0) {
        // The middle one: a single clock that is far ahead shall not take the others with it.
        const auto middle = times.begin() + static_cast<std::ptrdiff_t>(n / 2);
        std::nth_element(times.begin(), middle, times.begin() + static_cast<std::ptrdiff_t>(n));
        proposal = static_cast<std::uint64_t>(std::max<std::int64_t>(*middle, 0));
    }
    return std::max(proposal, last_token_.load(std::memory_order_relaxed) + 1);
}

void NodeSet::saw(std::uint64_t token) noexcept {
    std::uint64_t last = last_token_.load(std::memory_order_relaxed);
    while (token > last && !last_token_.compare_exchange_weak(last, token)) {
    }
}

std::uint64_t NodeSet::requests() const noexcept {
    std::uint64_t all = 0;
    for (const auto& node : nodes)
        all += node->shared->requests.load(std::memory_order_relaxed);
    return all;
}

}  // namespace holdfast::redlock
