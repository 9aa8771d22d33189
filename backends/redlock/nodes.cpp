#include "nodes.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "../resp/errors.hpp"
#include "../resp/keys.hpp"
#include "../resp/server_facts.hpp"
#include "errors.hpp"
#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "votes.hpp"

namespace holdfast::redlock {
namespace {

std::string key_of_mark(const std::string& prefix) {
    std::string out;
    resp::sibling(out, prefix + "redlock", 'n');
    return out;
}

/// "2:PARAMETERS SET". The parameters are what makes a node vote again after its start: a client
/// that waits less than another one's leases last would grant beside them.
struct Mark {
    bool known = false;
    std::string_view parameters, set;
    explicit Mark(std::string_view m) {
        const auto space = m.find(' ', m.find("durable="));
        known = m.starts_with("2:") && space != m.npos;
        if (!known) return;
        parameters = m.substr(2, space - 2);
        set = m.substr(space + 1);
    }
};

std::string mark_of(const Options& o) {
    return "2:max_ttl=" + std::to_string(o.max_ttl.count()) +
           "ms durable=" + (o.durable ? "yes" : "no") + " " + o.set;
}

/// Why a node with a mark of others is refused, and what to do.
std::string reason(const Mark& theirs, const Mark& ours, const std::string& key) {
    if (!theirs.known)
        return " is marked by another version of Holdfast, which may have another max_ttl. Stop "
               "all clients of that version, wait for the longer max_ttl, and delete the key " +
               key + " on every node";
    if (theirs.set != ours.set)
        return " is used with another set of nodes (" + std::string(theirs.set) +
               "). All clients must list the same hosts, or set the same "
               "node_set. If those clients are gone, delete the key " +
               key + " on every node";
    return " is used with " + std::string(theirs.parameters) + ", and here it is " +
           std::string(ours.parameters) +
           ". All clients of these nodes must use the same values. To change them, stop all "
           "clients, wait for the longer max_ttl, and delete the key " +
           key + " on every node";
}

std::string seconds(boot_clock::duration d) {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(d).count()) + " s";
}

resp::Target target_of(const spi::Settings& s, const spi::Endpoint& e) {
    resp::Target target(node_settings(s, e), true);
    target.secure = "redlocks://";
    return target;
}

}  // namespace

// --- one node
// -----------------------------------------------------------------------------------

Node::Node(const spi::Settings& s, const spi::Endpoint& e, NodeSet& set, unsigned i)
    : index(i),
      server(std::make_shared<resp::Server>(target_of(s, e))),
      where(text_of(e)),
      set_(set) {
    server->greeting = this;
}

void Node::set_down(const spi::Failure& why) {
    {
        const std::lock_guard hold(mutex_);
        why_ = why;
    }
    down_.store(true, std::memory_order_relaxed);
}

error_code Node::why() const {
    const std::lock_guard hold(mutex_);
    return why_.why;
}

std::string Node::words(boot_clock::time_point now) const {
    if (!votes(now))
        return "started not long ago, and votes in " + seconds(votes_from_.load() - now);
    const std::lock_guard hold(mutex_);
    // What a connection says begins with its own place, which is in front of this already.
    std::string_view said = why_.detail;
    for (const std::string_view place :
         {std::string_view(server->target.display), std::string_view(where)})
        if (said.starts_with(place)) said.remove_prefix(place.size());
    while (said.starts_with(':') || said.starts_with(' '))
        said.remove_prefix(1);
    return said.empty() ? why_.why.message() : std::string(said);
}

unsigned Node::ask(const resp::Target& target, std::string& out) {
    Command c;
    c.add("INFO").add("server");
    c.encode(out);
    c.clear();
    c.add("SET").add(set_.mark_key).add(set_.mark).add("NX");
    c.encode(out);
    c.clear();
    c.add("GET").add(set_.mark_key);
    c.encode(out);
    return target.client_name.empty() ? 3 : 3 + resp::usable().ask(target, out);
}

spi::Failure Node::answered(unsigned which, const Reply& r) {
    if (which == 0) return introduced(r);
    // A node that takes no writes at present can still be read, and be given releases; a replica
    // shows what others have.
    if (which == 1) {
        if (!r.is(Reply::Type::error) ||
            resp::from_reply(r.text) != resp::make(resp::Error::read_only))
            return {};
        return {resp::make(resp::Error::read_only),
                std::string(resp::shown(r.text)) + " Name the primary in the URL."};
    }
    if (which > 2) return {};  // HELLO names the connection, and INFO has said more
    return marked(r);
}

spi::Failure Node::introduced(const Reply& info) {
    if (info.is(Reply::Type::error)) {
        if (!set_.options.durable)
            return {resp::from_reply(info.text),
                    std::string(resp::shown(info.text)) +
                        ": INFO is required to notice a restarted node (or set durable=yes)"};
        met_.store(true, std::memory_order_release);
        return {};
    }
    if (!info.is_text()) return resp::make(resp::Error::protocol);
    using resp::fact;
    // Valkey has another word for it.
    if (fact(info.text, "redis_mode") == "cluster" || fact(info.text, "server_mode") == "cluster")
        return {resp::make(resp::Error::cluster), "this is a Redis Cluster"};
    const std::string_view version = fact(info.text, "redis_version");
    if (!version.empty() && resp::too_old(version))
        return {resp::make(resp::Error::too_old), "the server is Redis " + std::string(version)};
    const std::string_view id = fact(info.text, "run_id");
    const std::string_view uptime = fact(info.text, "uptime_in_seconds");
    long long up_for = 0;
    const auto read = std::from_chars(uptime.data(), uptime.data() + uptime.size(), up_for);
    if (id.empty() || read.ec != std::errc()) return resp::make(resp::Error::protocol);
    const auto now = boot_clock::now();
    const std::lock_guard hold(set_.mutex_);
    if (run_id_ != id) {
        // What has taken the place of a server may have run beside it, as a replica does. And a
        // clock that was set back behind the start makes the uptime negative.
        if (!run_id_.empty() || up_for < 0) up_for = 0;
        run_id_ = id;
        // Whole seconds, rounded down: it started at the latest at the beginning of this one.
        const auto up = spi::bounded_length<std::chrono::seconds>(up_for);
        if (!set_.options.durable)
            votes_from_.store(now - up + set_.options.max_ttl + std::chrono::seconds(1));
        set_.judge();
    }
    met_.store(true, std::memory_order_release);
    return {};
}

spi::Failure Node::marked(const Reply& r) {
    if (r.is(Reply::Type::error))
        return {resp::from_reply(r.text), std::string(resp::shown(r.text))};
    const std::lock_guard hold(set_.mutex_);
    const bool right = r.is(Reply::Type::nil) || (r.is_text() && r.text == set_.mark);
    foreign_mark_ = right ? std::string() : r.is_text() ? r.text.substr(0, 400) : "?";
    set_.judge();
    if (right) return {};
    return {make(Error::other_nodes), set_.wrong_why_.detail};
}

// --- all of them
// --------------------------------------------------------------------------------

NodeSet::NodeSet(const spi::Settings& s)
    : options(s), mark_key(key_of_mark(options.prefix)), mark(mark_of(options)) {
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
    spi::Failure why;
    for (std::size_t i = 0; i < nodes.size() && !why; ++i) {
        if (!nodes[i]->foreign_mark_.empty())
            why = {make(Error::other_nodes),
                   nodes[i]->where + reason(Mark(nodes[i]->foreign_mark_), Mark(mark), mark_key)};
        for (std::size_t j = 0; j < i && !why; ++j) {
            if (nodes[i]->run_id_.empty() || nodes[i]->run_id_ != nodes[j]->run_id_) continue;
            why = {make(Error::same_server),
                   nodes[j]->where + " and " + nodes[i]->where + " are one server"};
        }
    }
    const bool any = static_cast<bool>(why);
    wrong_why_ = std::move(why);
    wrong_.store(any, std::memory_order_release);
}

spi::Failure NodeSet::refused() const {
    if (!wrong_.load(std::memory_order_acquire)) return {};
    const std::lock_guard hold(mutex_);
    return wrong_why_;
}

std::uint64_t NodeSet::time_us(boot_clock::time_point now) const {
    std::array<std::int64_t, 31> times{};
    std::size_t n = 0;
    for (const auto& node : nodes)
        if (node->met()) times[n++] = node->server->clock.server_us(now);
    if (n < quorum()) return 0;
    const auto ours = std::chrono::system_clock::now().time_since_epoch();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(ours).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(middle({times.data(), n}, us), 0));
}

std::uint64_t NodeSet::propose(boot_clock::time_point now) const {
    const std::uint64_t time = time_us(now), last = last_token_.load(std::memory_order_relaxed);
    // A token that some wrong clock has taken far ahead is that one lock's matter.
    return time == 0 || last > time + 1'000'000 ? time : std::max(time, last + 1);
}

std::string NodeSet::trouble(std::size_t node, boot_clock::time_point now) const {
    const Node& n = *nodes[node];
    return n.down() || !n.votes(now) ? n.words(now) : std::string();
}

void NodeSet::saw(std::uint64_t token) noexcept {
    std::uint64_t last = last_token_.load(std::memory_order_relaxed);
    while (token > last && !last_token_.compare_exchange_weak(last, token)) {
    }
}

std::string NodeSet::serving() const {
    std::string all;
    for (const auto& node : nodes) {
        const std::string one = node->down() ? std::string() : node->server->serving();
        if (!one.empty()) all += (all.empty() ? "" : ", ") + one;
    }
    return all;
}

std::uint64_t NodeSet::requests() const noexcept {
    std::uint64_t all = 0;
    for (const auto& node : nodes)
        all += node->server->requests.load(std::memory_order_relaxed);
    return all;
}

}  // namespace holdfast::redlock
