#include "protocol.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include "errors.hpp"

namespace holdfast::redis {
namespace {

using Attempt = spi::Attempt;

std::int64_t jitter(std::int64_t middle, std::int64_t percent) {
    thread_local std::minstd_rand random{std::random_device{}()};
    const auto spread = std::max<std::int64_t>(middle * percent / 100, 1);
    return middle + std::uniform_int_distribution<std::int64_t>(-spread, spread)(random);
}

/// When a queued waiter looks again by itself.
milliseconds next_look(milliseconds window, std::int64_t left, std::int64_t rank, bool ours) {
    if (left == -2) return milliseconds(5);  // free: whoever is first is being told
    std::int64_t look = jitter(window.count() / 3, 10);
    if (rank == 0) {
        if (!ours) look = std::min(look, jitter(100, 50));  // a foreign release tells nobody
        if (left >= 0) look = std::min(look, left + 2);
    }
    return milliseconds(std::max<std::int64_t>(look, 1));
}

}  // namespace

std::string_view word(std::string_view& rest) noexcept {
    const auto space = rest.find(' ');
    const auto w = rest.substr(0, space);
    rest = space == rest.npos ? std::string_view() : rest.substr(space + 1);
    return w;
}

std::int64_t number(std::string_view text) noexcept {
    std::int64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
}

void assign(LeaveTexts& t, FencingToken token, const Shared& shared, boot_clock::time_point now) {
    t.state.clear();
    t.till.clear();
    if (!token) return;
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), token.value).ptr;
    const auto size = static_cast<std::size_t>(end - digits.data());
    t.state = "1:";
    if (size < 16) t.state.append(16 - size, '0');
    t.state.append(digits.data(), size);
    t.state += ":0r:";
    // 24 h from the token, or from now where the lease is older than that.
    const std::int64_t from =
        std::max(static_cast<std::int64_t>(token.value / 1000), shared.clock.server_ms(now));
    const auto last =
        std::to_chars(digits.data(), digits.data() + digits.size(), from + 86'400'000).ptr;
    t.till.assign(digits.data(), last);
}

void add_keys(Command& c, const Keys& k) {
    c.add(k.lock).add(k.state).add(k.queue).add(k.waiters).add(k.tombs);
}

void add_enter(Command& c, const Attempt& a, const Shared& shared) {
    const Place* place = find_place(a.place);
    const bool queue = a.queue && shared.options.queue;
    c.add(a.owner).add_number(a.ttl.count());
    c.add_number(queue ? window_of(a.ttl).count() : 0);
    c.add_number(shared.clock.server_ms(a.deadline));
    c.add(place == nullptr ? std::string_view() : std::string_view(place->ticket));
}

void add_leave(Command& c, std::string_view owner, char how, std::int64_t ghost,
               const LeaveTexts& t) {
    c.add(owner).add(how == 'r' ? "r" : how == 'a' ? "a" : "u").add_number(ghost);
    // The quick way out writes a clean release; any other one reads the state.
    c.add(how == 'r' ? std::string_view(t.state) : std::string_view()).add(t.till);
}

PreviousHolder previous_from(char letter) noexcept {
    switch (letter) {
        case 'n':
            return PreviousHolder::none;
        case 'r':
            return PreviousHolder::released;
        case 'a':
            return PreviousHolder::abandoned;
        case 'c':
            return PreviousHolder::crashed;
        default:
            return PreviousHolder::unknown;
    }
}

char letter_of(Outcome o) noexcept {
    return o == Outcome::abandoned ? 'a' : 'r';
}

Entered take_enter(std::string_view answer, Attempt& a, Shared& shared) {
    std::string_view rest = answer;
    const std::string_view what = word(rest);
    if (what == "g") {
        Attempt::Granted g;
        g.token.value = static_cast<std::uint64_t>(number(word(rest)));
        g.previous = previous_from(rest.empty() ? 'u' : rest.front());
        g.ttl = a.ttl;
        a.outcome = g;
        if (Place* p = find_place(a.place)) p->queued = p->unclaimed = false, p->handed.reset();
    } else if (what == "q") {
        Place& p = place_of(a.place);
        p.queued = true;
        p.seen = static_cast<std::uint64_t>(number(word(rest)));
        const std::int64_t left = number(word(rest));
        p.ticket = word(rest);
        const std::int64_t rank = number(word(rest));
        p.base = a.sent;
        p.window = window_of(a.ttl);
        a.outcome = Attempt::Busy{next_look(p.window, left, rank, rest == "1"), false};
    } else if (what == "b") {
        word(rest);
        const std::int64_t left = number(rest);
        std::int64_t look = std::min<std::int64_t>(a.ttl.count() / 3, 1000);
        if (left >= 0) look = std::min(look, left + 2);
        if (left == -2) look = 5;
        a.outcome = Attempt::Busy{milliseconds(std::max<std::int64_t>(look, 1)), true};
    } else if (what == "l") {
        shared.clock.sample(number(rest) * 1000, boot_clock::now());
        a.outcome = Attempt::Failed{make(Error::no_answer)};
        a.detail = "the request came too late to the server";
        return Entered::late;
    } else if (what == "t") {
        a.outcome = Attempt::Failed{make_error_code(errc::cancelled)};
    } else if (what == "x") {
        a.outcome = Attempt::Failed{make_error_code(errc::revoked)};
    } else if (what == "k") {
        a.outcome = Attempt::Failed{make(Error::wrong_type)};
        a.detail = "a key of this name holds something other than a lock of this format";
    } else {
        a.outcome = Attempt::Doubt{make(Error::protocol)};
    }
    return Entered::done;
}

void take_error(std::string_view text, Attempt& a) {
    const error_code ec = from_reply(text);
    a.detail = shown(text);
    if (nothing_done(ec))
        a.outcome = Attempt::Failed{ec, ec == make(Error::busy)};
    else
        a.outcome = Attempt::Doubt{ec};
}

void take_silence(error_code why, bool sent, Attempt& a, const Shared& shared) {
    if (!sent) {
        a.outcome = Attempt::Failed{why};
        return;
    }
    Place& p = place_of(a.place);
    p.ghost = std::max(p.ghost, shared.clock.server_ms(a.deadline) + 1);
    a.outcome = Attempt::Doubt{why};
    if (a.detail.empty()) a.detail = shared.options.display + ": " + why.message();
}

ReleaseResult take_leave(std::string_view answer) noexcept {
    if (answer == "r") return ReleaseResult::released;
    if (answer == "e") return ReleaseResult::already_expired;
    if (answer == "o" || answer == "k") return ReleaseResult::owned_by_other;
    return ReleaseResult::unreachable;
}

}  // namespace holdfast::redis
