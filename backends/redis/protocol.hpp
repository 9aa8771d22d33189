// The scripts' arguments and answers, for the engine and for lanes alike: what is written here once
// is what both send.
#pragma once
#include <span>
#include <string_view>

#include "keys.hpp"
#include "place.hpp"
#include "scripts.hpp"
#include "shared.hpp"

namespace holdfast::redis {

/// How long a hand-over holds before its waiter has spoken.
inline milliseconds window_of(milliseconds ttl) noexcept {
    return std::min(ttl, milliseconds(3000));
}

/// Texts that a release needs, kept by the caller while the command lives.
struct LeaveTexts {
    std::string state, till;
};
/// Empty for token 0.
void assign(LeaveTexts&, FencingToken, const Shared&, boot_clock::time_point now);

void add_keys(Command&, const Keys&);
/// One lock's arguments of `enter`; its ticket is read from the place.
void add_enter(Command&, const spi::Attempt&, const Shared&);
void add_leave(Command&, std::string_view owner, char how, std::int64_t ghost, const LeaveTexts&);

enum class Entered : std::uint8_t { done, late };
/// Reads one lock's answer into `a.outcome`. late: our idea of the server's clock was wrong, is
/// right now, and nothing was done: ask once more.
Entered take_enter(std::string_view answer, spi::Attempt& a, Shared&);
/// An error reply to the script.
void take_error(std::string_view text, spi::Attempt& a);
/// No answer: in doubt when it was sent.
void take_silence(error_code why, bool sent, spi::Attempt& a, const Shared&);
/// r, e, o, k.
ReleaseResult take_leave(std::string_view answer) noexcept;
PreviousHolder previous_from(char letter) noexcept;
char letter_of(Outcome) noexcept;

/// The part up to the next space; `rest` moves behind it.
std::string_view word(std::string_view& rest) noexcept;
std::int64_t number(std::string_view) noexcept;

}  // namespace holdfast::redis
