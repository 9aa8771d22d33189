// What operators ask: holders, waiters, names that are held, and breaking one.
#include <algorithm>

#include "backend.hpp"
#include "client_library.hpp"
#include "errors.hpp"
#include "holdfast/spi/owner.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

// Of a question that is given up the server still answers what was sent.
constexpr std::size_t asked_at_once = 256;

struct ZooKeeperBackend::Standing {
    std::string node;
    std::int32_t sequence = 0;
    std::string text;
    std::int64_t czxid = 0;
    std::int32_t version = 0;
    std::optional<NodeData> data;  ///< nothing: another library made it

    Holder shown() const {
        Holder h;
        h.token = FencingToken{static_cast<std::uint64_t>(czxid)};
        if (!data) {
            h.owner = node;
            h.foreign = true;
            const bool readable =
                text.size() <= 128 &&
                std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
            if (readable) h.note = text;
            return h;
        }
        const spi::Owner o = spi::parse_owner(data->owner);
        h.owner = data->owner;
        h.host = o.host;
        h.pid = o.pid;
        h.note = o.note;
        h.ttl_left = milliseconds(data->ttl_ms);
        h.revoked = data->revoked;
        return h;
    }
};

awaitable<result<std::vector<ZooKeeperBackend::Standing>>> ZooKeeperBackend::standing(
    SessionPtr session, std::string name, bool all, boot_clock::time_point deadline) {
    const std::string parent = parent_path(shared_->options, name);
    // As new as this moment, also when this server lags behind.
    session->handle().sync(parent);
    CallPtr listed = session->handle().list(parent);
    auto wait = finished(shared_->engine, listed, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    std::vector<Standing> out;
    if (listed->rc == ZNONODE) co_return out;
    if (listed->rc != ZOK) co_return from_rc(listed->rc);
    for (const std::string& node : listed->children) {
        Standing s;
        const auto sequence = sequence_of(node);
        if (!sequence) continue;
        s.node = node;
        s.sequence = *sequence;
        out.push_back(std::move(s));
    }
    if (out.empty()) co_return out;
    std::sort(out.begin(), out.end(),
              [](const Standing& a, const Standing& b) { return a.sequence < b.sequence; });
    if (!all) out.resize(1);
    std::vector<CallPtr> asked;
    asked.reserve(out.size());
    for (const Standing& s : out)
        asked.push_back(session->handle().get(parent + "/" + s.node, false));
    std::vector<Standing> there;
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto answer = finished(shared_->engine, asked[i], deadline);
        if (!co_await std::move(answer)) co_return make(Error::no_answer);
        if (asked[i]->rc == ZNONODE) continue;
        if (asked[i]->rc != ZOK) co_return from_rc(asked[i]->rc);
        out[i].text = asked[i]->text;
        out[i].czxid = asked[i]->czxid;
        out[i].version = asked[i]->version;
        out[i].data = read_data(out[i].text);
        there.push_back(std::move(out[i]));
    }
    co_return there;
}

awaitable<result<Inspection>> ZooKeeperBackend::inspect(std::string_view name,
                                                        boot_clock::time_point deadline,
                                                        std::string& detail) {
    const SessionPtr session = session_for(shared_->options.ttl);
    auto ready = session->ready(deadline, &detail);
    const error_code why = co_await std::move(ready);
    if (why) co_return why;
    std::string wanted(name);
    auto asking = standing(session, std::move(wanted), true, deadline);
    const auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    Inspection out;
    out.name = name;
    for (const Standing& s : *found)
        (out.holders.empty() ? out.holders : out.waiters).push_back(s.shown());
    for (Holder& w : out.waiters) {
        w.token = {};
        w.ttl_left.reset();
    }
    if (!out.holders.empty()) out.last_token = out.holders.front().token;
    co_return out;
}

awaitable<result<std::vector<std::string>>> ZooKeeperBackend::list(std::string_view prefix,
                                                                   std::size_t limit,
                                                                   boot_clock::time_point deadline,
                                                                   std::string& detail) {
    const SessionPtr session = session_for(shared_->options.ttl);
    const Options& o = shared_->options;
    const std::string wanted = o.prefix + std::string(prefix);
    auto ready = session->ready(deadline, &detail);
    const error_code why = co_await std::move(ready);
    if (why) co_return why;
    const std::string base = o.base.empty() ? std::string("/") : o.base;
    session->handle().sync(base);
    CallPtr all = session->handle().list(base);
    auto wait = finished(shared_->engine, all, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    std::vector<std::string> names;
    if (all->rc == ZNONODE) co_return names;
    if (all->rc != ZOK) co_return from_rc(all->rc);
    std::vector<std::pair<std::string, std::string>> lines;  // name and node
    std::sort(all->children.begin(), all->children.end());
    for (const std::string& child : all->children) {
        auto full = unescape(child);
        if (!full || !full->starts_with(wanted)) continue;
        if (o.base.empty() && child == "zookeeper") continue;
        lines.emplace_back(full->substr(o.prefix.size()), o.base + "/" + child);
    }
    for (std::size_t from = 0; from < lines.size() && names.size() < limit; from += asked_at_once) {
        const std::size_t to = std::min(from + asked_at_once, lines.size());
        std::vector<CallPtr> asked;
        asked.reserve(to - from);
        for (std::size_t i = from; i < to; ++i)
            asked.push_back(session->handle().list(lines[i].second));
        for (std::size_t i = from; i < to; ++i) {
            const CallPtr& call = asked[i - from];
            auto answer = finished(shared_->engine, call, deadline);
            if (!co_await std::move(answer)) co_return make(Error::no_answer);
            const bool held = std::any_of(call->children.begin(), call->children.end(),
                                          [](const std::string& n) { return sequence_of(n); });
            if (held && names.size() < limit) names.push_back(lines[i].first);
        }
    }
    std::sort(names.begin(), names.end());
    co_return names;
}

awaitable<result<std::vector<Broken>>> ZooKeeperBackend::break_lock(std::string_view name,
                                                                    const BreakOptions& options,
                                                                    boot_clock::time_point deadline,
                                                                    std::string& detail) {
    const SessionPtr session = session_for(shared_->options.ttl);
    auto ready = session->ready(deadline, &detail);
    const error_code why = co_await std::move(ready);
    if (why) co_return why;
    const std::string parent = parent_path(shared_->options, name);
    std::string wanted(name);
    auto asking = standing(session, std::move(wanted), false, deadline);
    const auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    if (found->empty()) co_return make_error_code(errc::not_held);
    const Standing& s = found->front();
    if (options.if_token && options.if_token->value != static_cast<std::uint64_t>(s.czxid))
        co_return make_error_code(errc::not_held);
    Broken out;
    out.holder = s.shown();
    const std::string path = parent + "/" + s.node;
    if (options.now) {
        CallPtr removed = session->handle().remove(path);
        auto wait = finished(shared_->engine, removed, deadline);
        if (!co_await std::move(wait)) co_return make(Error::no_answer);
        if (removed->rc == ZNONODE) co_return make_error_code(errc::not_held);
        if (removed->rc != ZOK) co_return from_rc(removed->rc);
        out.holder.revoked = true;
        co_return std::vector<Broken>(1, out);
    }
    if (!s.data) {
        detail =
            "a client of another library holds it and would not notice the revocation; to delete "
            "its node, break it with --now";
        co_return make_error_code(errc::not_supported);
    }
    // Its session sees the change before any later write of its own is acknowledged, so no renewal
    // that begins now succeeds; the holder's client deletes the node when the lease has run out,
    // and without that client the servers do.
    NodeData revoked = *s.data;
    revoked.revoked = true;
    const std::string text = write_data(revoked);
    CallPtr marked = session->handle().set(path, text, s.version);
    auto wait = finished(shared_->engine, marked, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    if (marked->rc == ZNONODE) co_return make_error_code(errc::not_held);
    if (marked->rc != ZOK && marked->rc != ZBADVERSION) co_return from_rc(marked->rc);
    out.holder.revoked = true;
    out.free_in = milliseconds(s.data->ttl_ms);
    co_return std::vector<Broken>(1, out);
}

awaitable<result<Capabilities>> ZooKeeperBackend::probe(boot_clock::time_point deadline,
                                                        std::string& detail) {
    const SessionPtr session = session_for(shared_->options.ttl);
    auto ready = session->ready(deadline, &detail);
    const error_code why = co_await std::move(ready);
    if (why) co_return why;
    Capabilities c = capabilities_;
    CallPtr config = session->handle().get("/zookeeper/config", false);
    auto wait = finished(shared_->engine, config, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    // One line for each server; nothing for one that stands alone. Unreadable: as configured.
    if (config->rc != ZOK) co_return c;
    int voters = 0;
    for (std::size_t at = config->text.find("server."); at != std::string::npos;
         at = config->text.find("server.", at + 1))
        if (config->text.find(":participant", at) < config->text.find('\n', at)) ++voters;
    c.safety = voters >= 3 ? SafetyClass::a : SafetyClass::b;
    c.set(Capability::survives_failover, voters >= 3);
    co_return c;
}

}  // namespace holdfast::zookeeper
