// The commands of this backend, for the engine and for lanes alike: what is written here once is
// what both send.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "nodes.hpp"

namespace holdfast::redlock {

/// A call for one lock. Where there is `many`, it is the call for several: the keys of all, then
/// the arguments of all; an array of their answers.
struct Verb {
    Script one;
    std::size_t keys;  ///< of one lock
    std::optional<Script> many{};
};

struct Scripts {
    Verb enter, release, renew, inspect, break_lock;
    /// Made once, on first use.
    static const Scripts& all();
};

/// The keys of one lock at every node.
struct Keys {
    std::string lock, state;
    void assign(std::string_view prefix, std::string_view name);
};

/// A token as the nodes keep it, and until when they do; both empty for none.
struct TokenTexts {
    std::string token, till;
    /// `now_ms`: some node's time.
    void assign(std::uint64_t token, std::int64_t now_ms, milliseconds ttl);
};

/// `fencing=off`: SET NX PX. Else the script. Texts must live until the command is encoded.
void add_enter(Command&, const Keys&, std::string_view value, milliseconds ttl,
               std::int64_t deadline_ms, const TokenTexts&, bool plain);
void add_release(Command&, const Keys&, std::string_view value);
void add_renew(Command&, const Keys&, std::string_view value, milliseconds ttl,
               std::int64_t deadline_ms, const TokenTexts&);

}  // namespace holdfast::redlock
