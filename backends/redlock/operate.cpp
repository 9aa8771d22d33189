// What operators ask: what each node says of a name, which names are held, break.
#include <algorithm>
#include <charconv>
#include <map>

#include "../resp/errors.hpp"
#include "../resp/keys.hpp"
#include "backend.hpp"
#include "errors.hpp"
#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/holder.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::redlock {
namespace {

/// The state string, as lua/mutex.lua describes it.
struct State {
    std::uint64_t token = 0;
    std::string_view value;
    explicit State(std::string_view s) {
        if (s.size() < 19 || (!s.starts_with("1:") && !s.starts_with("2:"))) return;
        std::from_chars(s.data() + 2, s.data() + 18, token);
        value = s.substr(19);
    }
};

/// A value at one node or more.
struct Seen {
    std::size_t nodes = 0;
    std::optional<milliseconds> left;
    bool revoked = false, shared = false;
    std::uint64_t token = 0;
};

/// What one node has: the owners' values with what is left of each, and for how long nobody can
/// have it.
struct Content {
    struct Part {
        std::string value;
        std::optional<milliseconds> left;
    };
    std::vector<Part> parts;
    std::optional<milliseconds> closed;
    bool shared = false;

    /// The answer of `inspect`.
    explicit Content(const Reply& r) {
        const std::string& value = r.elements[0].text;
        std::optional<milliseconds> left;
        if (r.elements[1].integer >= 0)
            left = spi::bounded_length<milliseconds>(r.elements[1].integer);
        shared = value == readers_value;
        if (value == closed_value)
            closed = left;
        else if (!value.empty() && !shared)
            parts.push_back({value, left});
        for (const Reply& row : r.items().subspan(3)) {
            const std::string_view text(row.text);
            const std::size_t space = std::min(text.find(' '), text.size() - 1);
            const milliseconds until(resp::number(text.substr(0, space)));
            std::string reader(text.substr(space + 1));
            if (reader.starts_with('='))
                closed = until;
            else
                parts.push_back({std::move(reader), until});
        }
    }
};

/// What the nodes' answers come to.
struct Sum {
    std::map<std::string, Seen> values;
    std::size_t silent = 0, strange = 0, closed = 0;
    std::optional<milliseconds> closed_for;
    spi::Units closed_units;
    std::uint64_t last_token = 0;

    void add(const Reply& reply, NodeView& view) {
        const Content content(reply);
        const State state(reply.elements[2].text);
        last_token = std::max(last_token, state.token);
        if (reply.elements[1].integer >= 0)
            view.ttl_left = spi::bounded_length<milliseconds>(reply.elements[1].integer);
        if (content.closed) ++closed, closed_for = std::max(closed_for, content.closed);
        if (content.closed && content.shared) closed_units = {1, spi::Units::all, Mode::shared};
        for (const auto& [value, left] : content.parts) {
            bool revoked = false;
            view.owner += view.owner.empty() ? "" : ", ";
            view.owner += owner_in(value, &revoked);
            const std::string own = revoked ? value.substr(1) : value;
            Seen& seen = values[own];
            ++seen.nodes;
            seen.left = std::max(seen.left, left);
            seen.revoked = seen.revoked || revoked;
            seen.shared = seen.shared || content.shared;
            if (state.value == own) seen.token = std::max(seen.token, state.token);
        }
    }
};

spi::Survey::Member member(std::string_view value, const Seen& seen) {
    spi::Survey::Member m{spi::holder_of(owner_in(value))};
    m.holder.ttl_left = seen.left;
    m.holder.revoked = seen.revoked;
    m.holder.token.value = seen.token;
    if (seen.shared) m.units.take = 1, m.units.mode = Mode::shared;
    return m;
}

}  // namespace

awaitable<std::vector<RedlockBackend::NodeReply>> RedlockBackend::ask_all(
    std::vector<std::vector<std::string>> commands, const ScriptCall* verb,
    boot_clock::time_point deadline) {
    const auto under_way = std::make_shared<Countdown>(context_.engine);
    const auto answers = std::make_shared<std::vector<NodeReply>>(commands.size());
    const auto over = std::make_shared<bool>(false);
    const bool patient = deployment_->patient();
    // The whole call ends at its deadline, whatever a node does.
    asio::steady_timer timer(context_.engine, spi::net::steady(deadline));
    const auto open = std::make_shared<std::size_t>(0);
    timer.async_wait([under_way, over, open](error_code ec) {
        if (ec || std::exchange(*over, true)) return;
        for (; *open > 0; --*open)
            under_way->end();
    });
    for (std::size_t i = 0; i < commands.size(); ++i) {
        if (commands[i].empty()) continue;
        under_way->begin();
        ++*open;
        NodeConnection::Request r{Ask::of(verb, std::move(commands[i]))};
        r.done = [under_way, answers, over, open, i](const Reply* reply, const error_code& why,
                                                     bool) {
            if (*over) return;
            NodeReply& said = (*answers)[i];
            said.why = why;
            if (reply != nullptr && reply->is(Reply::Type::error))
                said.why = resp::from_reply(reply->text);
            if (reply != nullptr) said.reply = std::make_unique<Reply>(*reply);
            --*open;
            under_way->end();
        };
        deployment_->connections[i]->ask(std::move(r), patient);
    }
    auto task = Countdown::over(under_way);
    co_await std::move(task);
    *over = true;
    for (std::size_t i = 0; i < answers->size(); ++i)
        if (!(*answers)[i].reply && !(*answers)[i].why)
            (*answers)[i].why = resp::make(resp::Error::no_answer);
    co_return std::move(*answers);
}

spi::Failure RedlockBackend::no_quorum(const std::vector<NodeReply>& all) const {
    if (auto wrong = set_->refused()) return wrong;
    Tally tally;
    tally.begin(all.size());
    std::size_t answered = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].why) ++answered;
        tally.set(
            i, {.kind = all[i].why ? Vote::Kind::missing : Vote::Kind::granted, .why = all[i].why});
    }
    if (answered >= set_->quorum()) return {};
    spi::Failure few(tally.why(), std::to_string(answered) + " of " + std::to_string(all.size()) +
                                      " nodes answered, " + std::to_string(set_->quorum()) +
                                      " are needed");
    const auto now = boot_clock::now();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].why)
            few.detail +=
                "; " + set_->nodes[i]->where + ": " +
                (set_->nodes[i]->down() ? set_->nodes[i]->words(now) : all[i].why.message());
    return few;
}

awaitable<spi::Answer<spi::Survey>> RedlockBackend::survey(std::string_view name,
                                                           boot_clock::time_point deadline) {
    Values ignored;
    auto task = look(name, deadline, ignored);
    co_return co_await std::move(task);
}

awaitable<spi::Answer<spi::Survey>> RedlockBackend::look(std::string_view name,
                                                         boot_clock::time_point deadline,
                                                         Values& held) {
    Keys keys;
    keys.assign(set_->options.prefix, name);
    // A script that only reads may be asked for with permission to read only, from Redis 7.0 on.
    const ScriptCall& verb = Scripts::all().inspect;
    const std::vector<std::string> command{"EVAL_RO",  verb.one.text(), "4",       keys.lock,
                                           keys.state, keys.readers,    keys.marks};
    std::vector<std::vector<std::string>> commands(set_->size(), command);
    auto task = ask_all(std::move(commands), nullptr, deadline);
    auto said = co_await std::move(task);
    std::vector<std::vector<std::string>> others(set_->size());
    const std::vector<std::string> words{keys.lock, keys.state, keys.readers, keys.marks};
    for (std::size_t i = 0; i < said.size(); ++i)
        if (said[i].why == errc::not_supported || said[i].why == errc::denied) others[i] = words;
    auto second = ask_all(others, &verb, deadline);
    auto again = co_await std::move(second);
    for (std::size_t i = 0; i < said.size(); ++i)
        if (!others[i].empty()) said[i] = std::move(again[i]);
    auto few = no_quorum(said);
    if (few) co_return few;
    spi::Survey out;
    Sum sum;
    for (std::size_t i = 0; i < said.size(); ++i) {
        NodeView view;
        view.node = set_->nodes[i]->where;
        const auto& reply = said[i].reply;
        if (said[i].why) {
            ++sum.silent;
            view.error = said[i].why;
        } else if (!reply->is(Reply::Type::array) || reply->count < 3) {
            ++sum.strange;
            view.error = make(Error::sealed);
        } else {
            sum.add(*reply, view);
        }
        out.nodes.push_back(std::move(view));
    }
    out.last_token.value = sum.last_token;
    if (sum.strange >= set_->quorum())
        co_return spi::Failure(make(Error::sealed),
                               "a key of this name holds something other than a lock");
    if (sum.closed > 0 && sum.closed + sum.silent >= set_->quorum()) {
        out.closed_for = sum.closed_for;
        out.units = sum.closed_units;
    }
    // Owners that may have a majority, counting the nodes that did not answer for each of them.
    for (const auto& [value, seen] : sum.values)
        if (seen.nodes + sum.silent >= set_->quorum()) {
            held.push_back(value);
            spi::Survey::Member m = member(value, seen);
            // A token is the time of its grant, unless some clock was ahead.
            const std::uint64_t now_us = set_->time_us(boot_clock::now());
            if (seen.token != 0 && now_us >= seen.token)
                m.holder.held_for = milliseconds((now_us - seen.token) / 1000);
            out.holders.push_back(std::move(m));
        }
    co_return out;
}

awaitable<result<std::vector<std::string>>> RedlockBackend::scan(std::size_t node,
                                                                 std::string pattern,
                                                                 boot_clock::time_point deadline) {
    std::vector<std::string> found;
    std::string cursor = "0";
    do {
        std::vector<std::vector<std::string>> commands(set_->size());
        commands[node] = {"SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", "string"};
        auto task = ask_all(std::move(commands), nullptr, deadline);
        auto said = co_await std::move(task);
        if (said[node].why) co_return said[node].why;
        const Reply& page = *said[node].reply;
        if (!page.is(Reply::Type::array) || page.count != 2 || !page.elements[0].is_text() ||
            !page.elements[1].is(Reply::Type::array))
            co_return resp::make(resp::Error::protocol);
        cursor = page.elements[0].text;
        std::vector<std::string> get{"MGET"};
        for (const Reply& key : page.elements[1].items())
            get.push_back(key.text);
        if (get.size() == 1) continue;
        std::vector<std::vector<std::string>> gets(set_->size());
        gets[node] = get;
        auto second = ask_all(std::move(gets), nullptr, deadline);
        auto values = co_await std::move(second);
        if (values[node].why) co_return values[node].why;
        const Reply& texts = *values[node].reply;
        if (!texts.is(Reply::Type::array) || texts.count != get.size() - 1)
            co_return resp::make(resp::Error::protocol);
        for (std::size_t i = 0; i < texts.count; ++i) {
            const Reply& value = texts.elements[i];
            // Only the value distinguishes a lock from any other text.
            if (!value.is_text()) continue;
            if (value.text == readers_value || spi::parse_owner(owner_in(value.text)).ours)
                found.push_back(get[i + 1]);
        }
    } while (cursor != "0");
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());  // SCAN may repeat itself
    co_return found;
}

awaitable<spi::Answer<std::vector<std::string>>> RedlockBackend::list(
    std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) {
    const std::string& ns = set_->options.prefix;
    const std::string pattern = resp::literal_pattern(ns + std::string(prefix)) + "*";
    std::map<std::string, std::size_t> counts;
    std::vector<NodeReply> said(set_->size());
    std::size_t silent = 0;
    for (std::size_t i = 0; i < set_->size(); ++i) {
        auto task = scan(i, pattern, deadline);
        const auto found = co_await std::move(task);
        if (!found) {
            said[i].why = found.error();
            ++silent;
            continue;
        }
        for (const std::string& key : *found)
            ++counts[key.substr(ns.size())];
    }
    auto few = no_quorum(said);
    if (few) co_return few;
    std::vector<std::string> names;
    for (const auto& [name, n] : counts)
        if (n + silent >= set_->quorum() && names.size() < limit) names.push_back(name);
    co_return names;
}

awaitable<spi::Answer<spi::Survey>> RedlockBackend::tell(std::string_view name,
                                                         const HolderFilter& which, spi::Tell what,
                                                         boot_clock::time_point deadline) {
    if (what == spi::Tell::asked) {
        auto refusing = spi::Backend::tell(name, which, what, deadline);
        co_return co_await std::move(refusing);
    }
    Values held;
    auto first = look(name, deadline, held);
    auto seen = co_await std::move(first);
    if (!seen) co_return seen.error();
    if (seen->holders.empty()) co_return make_error_code(errc::not_held);
    spi::Survey out;
    for (std::size_t i = 0; i < held.size(); ++i) {
        spi::Survey::Member& m = seen->holders[i];
        if (which.if_token && m.units.mode == Mode::shared)
            co_return spi::Failure(
                make_error_code(errc::not_supported),
                "the nodes do not keep the tokens of readers: name the owner instead");
        if (!spi::is_meant(which, m.holder.owner, m.holder.token)) continue;
        std::optional<milliseconds> free_in;
        const bool now = what == spi::Tell::gone;
        auto task = break_one(name, held[i], now, deadline, free_in);
        auto few = co_await std::move(task);
        if (few) co_return few;
        if (!free_in) continue;
        m.free_in = *free_in;
        out.holders.push_back(std::move(m));
    }
    if (!out.holders.empty()) co_return out;
    co_return spi::Failure(errc::not_held, "it is held by another owner, or with another token");
}

awaitable<spi::Failure> RedlockBackend::break_one(std::string_view name, const std::string& value,
                                                  bool now, boot_clock::time_point deadline,
                                                  std::optional<milliseconds>& free_in) {
    Keys keys;
    keys.assign(set_->options.prefix, name);
    const std::vector<std::string> command{
        keys.lock, keys.state, keys.readers,    keys.marks,
        keys.line, value,      now ? "1" : "0", std::to_string(set_->options.max_ttl.count())};
    std::vector<std::vector<std::string>> commands(set_->size(), command);
    auto task = ask_all(std::move(commands), &Scripts::all().break_lock, deadline);
    const auto said = co_await std::move(task);
    auto few = no_quorum(said);
    if (few) co_return few;
    std::size_t found = 0, kept_out = 0;
    for (const NodeReply& s : said) {
        if (s.why || !s.reply->is(Reply::Type::array) || s.reply->count != 3) continue;
        if (s.reply->elements[2].integer == 1) ++kept_out;
        if (s.reply->elements[0].text != "d") continue;
        ++found;
        const milliseconds left(std::max<std::int64_t>(s.reply->elements[1].integer, 0));
        free_in = std::max(free_in, std::optional(left));
    }
    // A request of the holder may still be on its way to a node that does not have it. A client
    // with fencing=off takes no notice of marks.
    const bool held_out = set_->options.fencing && kept_out >= set_->quorum();
    if (found == 0 || held_out || found > set_->size() - set_->quorum()) co_return spi::Failure();
    co_return spi::Failure(make(Error::no_quorum),
                           "it was broken at " + std::to_string(found) + " of " +
                               std::to_string(set_->size()) +
                               " nodes, and may still come to a majority of them: repeat it");
}

awaitable<spi::Answer<std::string>> RedlockBackend::note(std::string_view name,
                                                         std::optional<std::string> text,
                                                         boot_clock::time_point deadline) {
    const std::string key = resp::record_key(set_->options.prefix, name);
    std::vector<std::string> command{"GET", key};
    if (text) command = {"SET", key, *text, "EX", resp::record_seconds};
    std::vector<std::vector<std::string>> commands(set_->size(), command);
    auto task = ask_all(std::move(commands), nullptr, deadline);
    const auto said = co_await std::move(task);
    if (text) {
        auto few = no_quorum(said);
        if (few) co_return few;
        co_return std::move(*text);
    }
    std::string newest;
    for (const NodeReply& s : said)
        if (!s.why && s.reply->is_text()) newest = std::max(newest, s.reply->text);
    co_return newest;
}

}  // namespace holdfast::redlock
