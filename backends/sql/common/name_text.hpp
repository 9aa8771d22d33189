// A NameState as its row stores it. One exclusive holder is in the row's own columns, as for a
// mutex. All else is text in the column `meta`, one line each; the columns then say that a marker,
// which is no owner id, holds the name until the last of it ends.
#pragma once
#include <charconv>

#include "holdfast/spi/name_state.hpp"

namespace holdfast::sql {

using spi::NameState;

/// How a row says it: the column `mark`, and `previous`.
inline int number_of(PreviousHolder previous) noexcept {
    switch (previous) {
        case PreviousHolder::none:
            return 0;
        case PreviousHolder::released:
            return 1;
        case PreviousHolder::abandoned:
            return 2;
        case PreviousHolder::crashed:
            return 3;
        case PreviousHolder::unknown:
            break;
    }
    return -1;
}
inline PreviousHolder previous_of(std::int64_t number) noexcept {
    using enum PreviousHolder;
    for (const PreviousHolder p : {none, released, abandoned, crashed})
        if (number_of(p) == number) return p;
    return unknown;
}

/// For a clock that does not restart.
inline constexpr std::int64_t any_span = -1;

/// The columns for a name that both tables have.
struct Columns {
    std::string owner;  ///< empty: no owner
    std::string text;   ///< `meta`; empty: NULL
    std::int64_t token = 0, expires = 0, acquired = 0;
    std::int64_t span = any_span;  ///< upper bound of the holding time
    int mark = 0, previous = 0;
    bool revoked = false;
};

/// The first line of `meta`. A program that does not know it refuses the row as one of another
/// kind.
inline constexpr std::string_view text_begins = "hf 1\n";
/// The owner of a row without an exclusive holder. No owner id contains a colon.
inline constexpr std::string_view shared_marker = "hf:s", permits_marker = "hf:p",
                                  closed_marker = "hf:m";

/// The clocks of two time namespaces are rounded separately.
inline constexpr std::int64_t clock_rounding = 1000;
/// A ttl and a lock_delay are at most a day each.
inline constexpr std::int64_t longest_span = 2 * std::int64_t{86'400'000'000};

/// Whether it has not expired. For a clock that restarts with the machine, `span` says what
/// `expires` was counted from, so that what was written before a restart closes the name no longer
/// than that.
inline bool lasts(std::int64_t expires, std::int64_t span, std::int64_t now) noexcept {
    return expires > now &&
           (span == any_span || expires - now <= std::min(span, longest_span) + clock_rounding);
}

/// Reads and writes one line: a word, numbers, an owner.
class TextLine {
public:
    explicit TextLine(std::string_view text) : rest_(text) {}
    bool word(std::string_view w) {
        if (!rest_.starts_with(w)) return false;
        rest_.remove_prefix(w.size());
        return true;
    }
    template <class T>
    T number() {
        T n{};
        const bool spaced = word(" ");
        const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
        good_ = good_ && spaced && ec == std::errc();
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return n;
    }
    std::string owner() {
        good_ = good_ && word(" ");
        return std::string(rest_);
    }
    bool good() const noexcept { return good_; }

    template <class... Numbers>
    static void write(std::string& out, std::string_view word, std::string_view owner,
                      Numbers... n) {
        out += word;
        ((out += ' ', out += std::to_string(n)), ...);
        out += ' ';
        out += owner;
        out += '\n';
    }

private:
    std::string_view rest_;
    bool good_ = true;
};

/// Nullopt when the text is from another program or a newer version. `restarts`: the clock restarts
/// with the machine.
inline std::optional<NameState> read_state(const Columns& c, std::int64_t now, bool restarts) {
    NameState n;
    n.now = now;
    n.token = c.token;
    n.previous = previous_of(c.mark);
    std::string_view text = c.text;
    NameState::Holding first;  // that of the columns
    first.owner = c.owner;
    first.token = c.token;
    first.since = c.acquired;
    first.valid = first.expires = c.expires;
    first.previous = previous_of(c.previous);
    first.revoked = c.revoked;
    if (!text.empty() && !text.starts_with(text_begins)) return std::nullopt;
    if (!text.empty()) text.remove_prefix(text_begins.size());
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (end == text.npos) return std::nullopt;
        TextLine line(text.substr(0, end));
        text.remove_prefix(end + 1);
        const auto span = [&] {
            const auto written = line.number<std::int64_t>();
            return restarts ? written : any_span;
        };
        if (line.word("part")) {
            NameState::Holding p;
            p.units.take = line.number<std::uint32_t>();
            p.units.of = line.number<std::uint32_t>();
            p.units.mode = line.number<int>() != 0 ? Mode::shared : Mode::exclusive;
            p.token = line.number<std::int64_t>();
            p.since = line.number<std::int64_t>();
            p.valid = line.number<std::int64_t>();
            p.expires = line.number<std::int64_t>();
            const auto longest = span();
            p.previous = previous_of(line.number<int>());
            p.revoked = line.number<int>() != 0;
            p.asked = line.number<int>() != 0;
            p.owner = line.owner();
            if (lasts(p.expires, longest, now)) n.holders.push_back(std::move(p));
        } else if (line.word("wait")) {
            NameState::Waiter m;
            m.units.take = line.number<std::uint32_t>();
            m.units.of = line.number<std::uint32_t>();
            m.units.mode = line.number<int>() != 0 ? Mode::shared : Mode::exclusive;
            m.ticket = line.number<std::int64_t>();
            m.until = line.number<std::int64_t>();
            m.owner = line.owner();
            if (lasts(m.until, NameState::place_lasts, now)) n.add(std::move(m));
        } else if (line.word("gone")) {
            NameState::BrokenHolder g;
            g.until = line.number<std::int64_t>();
            const auto longest = span();
            g.owner = line.owner();
            if (lasts(g.until, longest, now)) n.broken.push_back(std::move(g));
        } else if (line.word("held")) {
            // More about the holder in the columns, if it is still the same one.
            const auto token = line.number<std::int64_t>();
            const auto valid = line.number<std::int64_t>();
            const bool asked = line.number<int>() != 0;
            (void)line.owner();
            if (token == c.token) {
                if (valid != 0) first.valid = valid;
                first.asked = asked;
            }
        } else {
            return std::nullopt;
        }
        if (!line.good()) return std::nullopt;
    }
    if (c.owner.empty() || c.owner.starts_with("hf:")) return n;
    if (lasts(c.expires, c.span, now))
        n.holders.insert(n.holders.begin(), std::move(first));
    else
        n.ended = std::move(first);
    return n;
}

/// Whether the text says that the exclusive holder with that token was asked to release.
inline bool asked_in(std::string_view text, std::int64_t token) {
    Columns c;
    c.owner = "?";
    c.text = text;
    c.token = token;
    c.expires = 1;
    const auto state = read_state(c, 0, false);
    return state && state->holders.front().asked;
}

/// `before`: as it was read.
inline Columns columns_of(const NameState& n, const Columns& before) {
    Columns c = before;
    c.token = n.token;
    std::string text;
    const NameState::Holding* holder = nullptr;
    std::int64_t last = n.now, since = n.now;
    bool permits = false, shared = false;
    for (const NameState::Holding& p : n.holders) {
        last = std::max(last, p.expires);
        since = std::min(since, p.since);
        if (p.exclusive()) {
            holder = &p;
            const bool more = p.valid != p.expires;
            if (more || p.asked)
                TextLine::write(text, "held", "", p.token, more ? p.valid : 0, int{p.asked});
            continue;
        }
        permits = permits || p.units.permits();
        shared = shared || !p.owner.empty();
        TextLine::write(text, "part", p.owner, p.units.take, p.units.of,
                        int{p.units.mode == Mode::shared}, p.token, p.since, p.valid, p.expires,
                        p.expires - n.now, number_of(p.previous), int{p.revoked}, int{p.asked});
    }
    const bool held = !n.holders.empty();
    for (const NameState::Waiter& m : n.waiters) {
        TextLine::write(text, "wait", m.owner, m.units.take, m.units.of,
                        int{m.units.mode == Mode::shared}, m.ticket, m.until);
        if (!held) last = std::max(last, m.until);
    }
    for (const NameState::BrokenHolder& g : n.broken) {
        TextLine::write(text, "gone", g.owner, g.until, g.until - n.now);
        if (!held) last = std::max(last, g.until);
    }
    c.text = text.empty() ? std::string() : std::string(text_begins) + text;
    if (!held && n.ended) return c;
    c.expires = held || last > n.now ? last : 0;
    if (c.span != any_span) c.span = last - n.now;
    c.mark = holder != nullptr ? 0 : number_of(n.previous);
    c.revoked = holder != nullptr && holder->revoked;
    if (held) c.acquired = since;
    if (holder != nullptr) {
        c.owner = holder->owner;
        c.previous = number_of(holder->previous);
    } else if (!held) {
        c.owner.clear();
    } else {
        c.owner = permits ? permits_marker : shared ? shared_marker : closed_marker;
    }
    return c;
}

// The last break of a name, in a row of the same table with slot 1. It looks like that of a free
// name, so what removes names that nobody has used for a day removes it.

inline constexpr std::string_view record_word = "broken ";

inline std::string record_text(std::string_view record) {
    return std::string(text_begins).append(record_word).append(record);
}
/// Empty for any other text.
inline std::string read_record(std::string_view meta) {
    if (!meta.starts_with(text_begins)) return {};
    meta.remove_prefix(text_begins.size());
    if (!meta.starts_with(record_word)) return {};
    return std::string(meta.substr(record_word.size()));
}

}  // namespace holdfast::sql
