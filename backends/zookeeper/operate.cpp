// What operators ask: holders, waiters, names that are held, and breaking one.
#include <algorithm>
#include <map>

#include "backend.hpp"
#include "client_library.hpp"
#include "errors.hpp"
#include "holdfast/spi/holder.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

struct ZooKeeperBackend::QueuedNode {
    std::string node, path;
    Rank rank;
    std::string text;
    std::int64_t czxid = 0;
    std::int32_t version = 0;
    std::optional<NodeData> data;   ///< nothing: another library made it
    std::vector<std::string> more;  ///< permits beyond the first: their paths
    std::uint32_t limit = 0;        ///< of permits; 0: another kind of lock

    bool permit() const { return rank.recipe == Recipe::permit; }
    bool reading() const { return reads(rank.recipe) || (data && data->shared); }
    spi::Survey::Member shown() const {
        spi::Survey::Member m{spi::holder_of(data ? std::string_view(data->owner) : node)};
        if (limit > 0) {
            m.units.take = static_cast<std::uint32_t>(1 + more.size());
            if (data && data->permits > 0) m.units.take = data->permits;
            m.units.of = limit;
        } else if (reading()) {
            m.units.take = 1;
        }
        m.units.mode = reading() ? Mode::shared : Mode::exclusive;
        Holder& h = m.holder;
        h.foreign = !data;
        if (!permit()) h.token = FencingToken{static_cast<std::uint64_t>(czxid)};
        if (!data) {
            const bool readable =
                text.size() <= 128 &&
                std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
            if (readable) h.note = text;
            h.asked = text == curator_revoke;
            return m;
        }
        h.ttl_left = milliseconds(data->ttl_ms);
        h.revoked = data->revoked;
        h.asked = data->asked;
        m.free_in = milliseconds(data->ttl_ms + data->delay_ms);
        return m;
    }
    bool meant(const HolderFilter& which) const {
        return spi::is_meant(which, data ? data->owner : node,
                             {permit() ? 0 : static_cast<std::uint64_t>(czxid)});
    }
};

struct ZooKeeperBackend::QueueSnapshot {
    std::vector<QueuedNode> all;  ///< in the order of their places; the first of them hold it
    std::size_t holders = 0;
};

awaitable<result<std::vector<std::string>>> ZooKeeperBackend::children(
    SessionPtr session, std::string path, boot_clock::time_point deadline) {
    // As new as this moment, also when this server lags behind.
    session->handle().sync(path);
    const bool watched = shared_->observed.has(path);
    CallPtr listed = session->handle().list(path, {}, watched);
    auto wait = finished(shared_->engine, listed, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    if (watched && listed->rc == ZNONODE)
        session->handle().exists(path, [shared = shared_, path](Call& c) {
            if (c.rc == ZOK) shared->observed.changed(path);  // since the list
        });
    if (listed->rc != ZOK && listed->rc != ZNONODE) co_return from_rc(listed->rc);
    co_return std::move(listed->children);
}

awaitable<result<std::vector<ZooKeeperBackend::QueuedNode>>> ZooKeeperBackend::read_nodes(
    SessionPtr session, std::string parent, std::vector<std::string> nodes,
    boot_clock::time_point deadline) {
    std::vector<QueuedNode> out;
    for (const std::string& node : nodes) {
        const auto rank = rank_of(node);
        if (!rank) continue;
        QueuedNode s;
        s.node = node;
        s.path = parent + "/" + node;
        s.rank = *rank;
        out.push_back(std::move(s));
    }
    std::sort(out.begin(), out.end(), [](const QueuedNode& a, const QueuedNode& b) {
        return std::pair(a.rank.sequence, a.node) < std::pair(b.rank.sequence, b.node);
    });
    std::vector<QueuedNode> there;
    for (std::size_t from = 0; from < out.size(); from += asked_at_once) {
        const std::size_t to = std::min(from + asked_at_once, out.size());
        std::vector<CallPtr> asked;
        for (std::size_t i = from; i < to; ++i)
            asked.push_back(session->handle().get(out[i].path, false));
        for (std::size_t i = from; i < to; ++i) {
            const CallPtr call = asked[i - from];
            auto answer = finished(shared_->engine, call, deadline);
            if (!co_await std::move(answer)) co_return make(Error::no_answer);
            if (call->rc == ZNONODE) continue;
            if (call->rc != ZOK) co_return from_rc(call->rc);
            out[i].text = call->text;
            out[i].czxid = call->czxid;
            out[i].version = call->version;
            out[i].data = read_data(out[i].text);
            there.push_back(std::move(out[i]));
        }
    }
    co_return there;
}

awaitable<spi::Answer<ZooKeeperBackend::QueueSnapshot>> ZooKeeperBackend::standing(
    SessionPtr session, std::string name, boot_clock::time_point deadline) {
    const std::string parent = parent_path(shared_->options, name);
    QueueSnapshot out;
    auto listing = children(session, parent, deadline);
    auto nodes = co_await std::move(listing);
    if (!nodes) co_return nodes.error();
    std::vector<std::string> strangers;
    for (const std::string& n : *nodes)
        if (is_stranger(n, false)) strangers.push_back(n);
    auto looking = no_claims(session, parent, std::move(strangers), deadline);
    const spi::Failure failed = co_await std::move(looking);
    if (failed) co_return failed;
    std::erase_if(*nodes,
                  [](const std::string& n) { return n != permits_folder && !stands_in_line(n); });
    const bool folder = std::find(nodes->begin(), nodes->end(), permits_folder) != nodes->end();
    auto reading = read_nodes(session, parent, std::move(*nodes), deadline);
    auto line = co_await std::move(reading);
    if (!line) co_return line.error();
    if (!line->empty() || !folder) {
        out.holders = holders_among(*line);
        out.all = std::move(*line);
        co_return out;
    }
    auto permits = standing_for_permits(session, parent, deadline);
    co_return co_await std::move(permits);
}

awaitable<spi::Answer<ZooKeeperBackend::QueueSnapshot>> ZooKeeperBackend::standing_for_permits(
    SessionPtr session, std::string parent, boot_clock::time_point deadline) {
    QueueSnapshot out;
    std::vector<QueuedNode> found[2];
    const std::string_view folders[] = {permits_folder, turns_folder};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string path = parent + "/" + std::string(folders[i]);
        auto listing = children(session, path, deadline);
        auto nodes = co_await std::move(listing);
        if (!nodes) co_return nodes.error();
        auto reading = read_nodes(session, path, std::move(*nodes), deadline);
        auto read = co_await std::move(reading);
        if (!read) co_return read.error();
        found[i] = std::move(*read);
    }
    CallPtr own = session->handle().get(parent, false);
    auto wait = finished(shared_->engine, own, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    const std::size_t count = found[0].size();
    const std::size_t limit = read_limit(own->text).value_or(static_cast<std::uint32_t>(count));
    // All of one acquisition's have its guid; Curator makes one node with each. Curator's Revoker
    // may have written over the data of some.
    std::map<std::string, std::size_t, std::less<>> of_guid;
    std::vector<std::size_t> last;
    for (std::size_t i = 0; i < count; ++i) {
        QueuedNode& s = found[0][i];
        const auto [known, is_new] = of_guid.try_emplace(guid_of(s.node), out.all.size());
        if (!is_new) {
            QueuedNode& first = out.all[known->second];
            first.more.push_back(s.path);
            last[known->second] = i;
            if (first.data || !s.data) continue;
            first.data = std::move(s.data);
            first.data->asked = first.data->asked || first.text == curator_revoke;
            continue;
        }
        out.all.push_back(std::move(s));
        last.push_back(i);
    }
    for (std::size_t i = out.all.size(); i-- > 0;)
        if (last[i] >= limit) out.all.erase(out.all.begin() + static_cast<std::ptrdiff_t>(i));
    out.holders = out.all.size();
    for (QueuedNode& turn : found[1]) {
        const bool holds =
            turn.data && std::any_of(out.all.begin(), out.all.end(), [&](const QueuedNode& s) {
                return s.data && s.data->owner == turn.data->owner;
            });
        if (!holds) out.all.push_back(std::move(turn));
    }
    for (QueuedNode& s : out.all)
        s.limit = static_cast<std::uint32_t>(limit);
    co_return out;
}

awaitable<spi::Answer<std::vector<ZooKeeperBackend::QueuedNode>>> ZooKeeperBackend::holding(
    SessionPtr session, std::string name, HolderFilter which, boot_clock::time_point deadline) {
    auto asking = standing(std::move(session), std::move(name), deadline);
    auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    found->all.resize(found->holders);
    std::erase_if(found->all, [&](const QueuedNode& s) { return !s.meant(which); });
    if (found->all.empty()) co_return make_error_code(errc::not_held);
    co_return std::move(found->all);
}

std::size_t ZooKeeperBackend::holders_among(const std::vector<QueuedNode>& line) {
    if (line.empty() || !line.front().reading()) return std::min<std::size_t>(line.size(), 1);
    const auto writer =
        std::find_if(line.begin(), line.end(), [](const QueuedNode& s) { return !s.reading(); });
    return static_cast<std::size_t>(writer - line.begin());
}

awaitable<spi::Answer<spi::Survey>> ZooKeeperBackend::survey(std::string_view name,
                                                             boot_clock::time_point deadline) {
    const SessionPtr session = session_for(shared_->options.ttl);
    auto ready = session->ready(deadline);
    const spi::Failure failed = co_await std::move(ready);
    if (failed) co_return failed;
    std::string wanted(name);
    auto asking = standing(session, std::move(wanted), deadline);
    const auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    spi::Survey out;
    for (std::size_t i = 0; i < found->all.size(); ++i) {
        const QueuedNode& s = found->all[i];
        (i < found->holders ? out.holders : out.waiters).push_back(s.shown());
        if (s.rank.recipe == Recipe::writer) out.units = {1, spi::Units::all, Mode::shared};
    }
    co_return out;
}

awaitable<spi::Answer<std::vector<std::string>>> ZooKeeperBackend::list(
    std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) {
    const SessionPtr session = session_for(shared_->options.ttl);
    const Options& o = shared_->options;
    const std::string wanted = o.prefix + std::string(prefix);
    auto ready = session->ready(deadline);
    const spi::Failure failed = co_await std::move(ready);
    if (failed) co_return failed;
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
            bool held = std::any_of(call->children.begin(), call->children.end(),
                                    [](const std::string& n) { return stands_in_line(n); });
            const auto folder =
                std::find(call->children.begin(), call->children.end(), permits_folder);
            if (!held && folder != call->children.end()) {
                auto looking = children(session, lines[i].second + "/" + *folder, deadline);
                const auto permits = co_await std::move(looking);
                if (!permits) co_return permits.error();
                held = !permits->empty();
            }
            if (held && names.size() < limit) names.push_back(lines[i].first);
        }
    }
    std::sort(names.begin(), names.end());
    co_return names;
}

awaitable<result<std::vector<ZooKeeperBackend::QueuedNode>>> ZooKeeperBackend::mark_nodes(
    SessionPtr session, std::vector<QueuedNode> open, bool NodeData::*what,
    boot_clock::time_point deadline) {
    std::vector<QueuedNode> told;
    while (!open.empty() && boot_clock::now() < deadline) {
        std::vector<CallPtr> calls;
        for (QueuedNode& s : open) {
            std::string text(curator_revoke);
            if (s.data) {
                (*s.data).*what = true;
                text = write_data(*s.data);
            }
            calls.push_back(session->handle().set(s.path, text, s.version));
        }
        std::vector<QueuedNode> again;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            auto wait = finished(shared_->engine, calls[i], deadline);
            if (!co_await std::move(wait)) co_return make(Error::no_answer);
            if (calls[i]->rc == ZNONODE) continue;
            if (calls[i]->rc == ZBADVERSION) {
                // Somebody else has written to it: the same with what it says now.
                CallPtr read = session->handle().get(open[i].path, false);
                auto answer = finished(shared_->engine, read, deadline);
                if (!co_await std::move(answer)) co_return make(Error::no_answer);
                if (read->rc == ZNONODE) continue;
                if (read->rc != ZOK) co_return from_rc(read->rc);
                open[i].version = read->version;
                open[i].text = read->text;
                open[i].data = read_data(read->text);
                again.push_back(std::move(open[i]));
                continue;
            }
            if (calls[i]->rc != ZOK) co_return from_rc(calls[i]->rc);
            told.push_back(std::move(open[i]));
        }
        open = std::move(again);
    }
    if (!open.empty()) co_return make(Error::no_answer);
    if (told.empty()) co_return make_error_code(errc::not_held);
    co_return told;
}

awaitable<result<std::vector<ZooKeeperBackend::QueuedNode>>> ZooKeeperBackend::delete_nodes(
    SessionPtr session, std::vector<QueuedNode> all, boot_clock::time_point deadline) {
    std::vector<CallPtr> calls;
    for (const QueuedNode& s : all) {
        for (const std::string& path : s.more)
            session->handle().remove(path);
        calls.push_back(session->handle().remove(s.path));
    }
    std::vector<QueuedNode> gone;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        auto wait = finished(shared_->engine, calls[i], deadline);
        if (!co_await std::move(wait)) co_return make(Error::no_answer);
        if (calls[i]->rc == ZNONODE) continue;
        if (calls[i]->rc != ZOK) co_return from_rc(calls[i]->rc);
        gone.push_back(std::move(all[i]));
    }
    if (gone.empty()) co_return make_error_code(errc::not_held);
    co_return gone;
}

awaitable<spi::Answer<spi::Survey>> ZooKeeperBackend::tell(std::string_view name,
                                                           const HolderFilter& which,
                                                           spi::Tell what,
                                                           boot_clock::time_point deadline) {
    const SessionPtr session = session_for(shared_->options.ttl);
    auto ready = session->ready(deadline);
    const spi::Failure failed = co_await std::move(ready);
    if (failed) co_return failed;
    std::string wanted(name);
    auto asking = holding(session, std::move(wanted), which, deadline);
    auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    // Of other libraries only Curator's locks hear a request, and none a break.
    const auto deaf = [what](const QueuedNode& s) {
        return !s.data && (what == spi::Tell::revoked || s.rank.recipe == Recipe::kazoo_writer ||
                           s.rank.recipe == Recipe::kazoo_reader || s.rank.recipe == Recipe::latch);
    };
    const bool foreign = std::any_of(found->begin(), found->end(), deaf);
    if (what == spi::Tell::asked) std::erase_if(*found, deaf);
    if ((what == spi::Tell::revoked && foreign) || found->empty())
        co_return spi::Failure(errc::not_supported, spi::foreign_holder(what, "node"));
    // A revoked holder's session sees the change before any later write of its own is acknowledged,
    // so no renewal that begins now succeeds; its client deletes the node when the lease has run
    // out, and without that client the servers do.
    const auto mark = what == spi::Tell::asked ? &NodeData::asked : &NodeData::revoked;
    auto telling = what == spi::Tell::gone ? delete_nodes(session, std::move(*found), deadline)
                                           : mark_nodes(session, std::move(*found), mark, deadline);
    const auto told = co_await std::move(telling);
    if (!told) co_return told.error();
    spi::Survey out;
    for (const QueuedNode& s : *told)
        out.holders.push_back(s.shown());
    co_return out;
}

}  // namespace holdfast::zookeeper
