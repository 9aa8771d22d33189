// The commands of this backend, written once for the engine and for lanes.
#pragma once
#include <boost/container/small_vector.hpp>
#include <concepts>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../resp/codec.hpp"
#include "../resp/script.hpp"
#include "../resp/server.hpp"

namespace holdfast::redlock {

using resp::Command;
using resp::Reply;
using resp::Script;

/// The script for one lock. `many`, if there, is for several: the keys of all, then the arguments
/// of all; the answer is an array.
struct ScriptCall {
    Script one;
    std::size_t keys;  ///< of one lock
    std::optional<Script> many{};
};

struct Scripts {
    ScriptCall enter, release, give_back, renew, enter_units, renew_units, leave, inspect,
        break_lock;
    /// Made once, on first use.
    static const Scripts& all();
};

/// The keys of one lock at every node.
struct Keys {
    std::string lock, state, readers, marks, line;
    void assign(std::string_view prefix, std::string_view name);
};

/// A token as the nodes store it; empty for none.
std::string token_text(std::uint64_t token);
/// Instead of a token: asks what each node has.
inline constexpr const char* no_proposal = "?";

/// One request, the same for all nodes of a round.
struct Ask {
    using Words = boost::container::small_vector<std::string, 6>;
    const ScriptCall* verb = nullptr;  ///< null: the words are a command
    /// Its keys, then its arguments.
    std::shared_ptr<const Words> words{};
    /// Sent instead of words[deadline_word], in the node's own time; 0: no deadline.
    std::size_t deadline_word = 0;
    boot_clock::time_point deadline{};
    /// Sent as the time that is left until then, for the node to begin when it has the request.
    bool length = false;

    /// For a request for one lock: the value of its key, now or afterwards.
    const std::string& value() const noexcept {
        return (*words)[verb == nullptr ? value_of_set : verb->keys];
    }
    /// Avoids the second copy of each word that an initializer list would make.
    template <std::convertible_to<std::string>... Word>
    static Ask of(const ScriptCall* verb, Word&&... word) {
        const auto all = std::make_shared<Words>();
        (all->emplace_back(std::forward<Word>(word)), ...);
        return {verb, all, 0, {}};
    }
    static constexpr std::size_t value_of_set = 2;
    static Ask of(const ScriptCall* verb, std::vector<std::string> all) {
        return {verb, std::make_shared<const Words>(std::make_move_iterator(all.begin()),
                                                    std::make_move_iterator(all.end()))};
    }
    /// True if the request came too late by the node's clock, and did nothing.
    bool late(const Reply& r) const noexcept {
        return deadline_word != 0 && r.is_text() && r.text.starts_with("l ");
    }
};

Ask enter_ask(const Keys&, const std::string& value, milliseconds ttl, std::string token,
              boot_clock::time_point deadline);
/// `fencing=off`: SET NX PX.
Ask plain_ask(const Keys&, const std::string& value, milliseconds ttl);
Ask renew_ask(const Keys&, const std::string& value, milliseconds ttl, std::string token,
              boot_clock::time_point deadline);
/// `fencing=off`: compare-and-delete, which tells nobody.
Ask release_ask(std::string key, std::string value);

/// Orders waiters alike at all nodes. Without a ticket: before all others. `channel`: where a node
/// tells this waiter that it is its turn.
std::string mark_text(std::uint64_t ticket, bool shared, std::string_view owner,
                      std::string_view channel = {});
inline constexpr const char* first_ticket = "0000000000000000";
/// Later than every other ticket.
inline constexpr std::uint64_t last_ticket = 9'999'999'999'999'999;

/// An acquisition's relation to others of its name.
struct WaiterTicket {
    bool shared = false;
    std::string mark;
    milliseconds window{0};  ///< how long the mark stays if it cannot be granted
};
/// As enter_ask, where there are readers or marks.
Ask enter_units_ask(const Keys&, const std::string& value, milliseconds ttl, std::string token,
                    const WaiterTicket&, boot_clock::time_point deadline);
/// The renewal of a reader, or of a writer that becomes one.
Ask renew_units_ask(const Keys&, const std::string& value, milliseconds ttl,
                    boot_clock::time_point deadline);
/// Releases a grant, with its mark.
Ask undo_ask(const Keys&, const std::string& value, bool fencing, bool shared,
             std::string mark = {});
/// Releases any kind of lock and removes its mark. The name stays closed until then, unless that
/// has passed. It is sent as a length, since a node's clock may have been set meanwhile.
Ask leave_ask(const Keys&, const std::string& value, std::string mark,
              boot_clock::time_point closed_until);

/// What is left until then, rounded up; 0: it has passed.
std::int64_t left_ms(boot_clock::time_point) noexcept;

/// One command for one or several requests with the same verb. `text`: sends the whole script. The
/// words must live until the command is encoded.
template <class Asks>
void write(Command& c, const Asks& asks, const resp::ClockOffset& clock, bool text) {
    c.clear();
    const ScriptCall* const verb = asks.begin()->verb;
    const std::size_t keys = verb == nullptr ? 0 : verb->keys;
    if (verb != nullptr) {
        const Script& script = asks.size() == 1 ? verb->one : *verb->many;
        resp::begin(c, script, static_cast<long long>(keys * asks.size()));
        if (text) resp::with_text(c, script);
    }
    for (const Ask& a : asks)
        for (std::size_t i = 0; i < keys; ++i)
            c.add((*a.words)[i]);
    for (const Ask& a : asks)
        for (std::size_t i = keys; i < a.words->size(); ++i) {
            if (i == a.deadline_word && i != 0)
                c.add_number(a.length ? left_ms(a.deadline) : clock.server_ms(a.deadline));
            else
                c.add((*a.words)[i]);
        }
}

}  // namespace holdfast::redlock
