#include "votes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "../resp/errors.hpp"
#include "errors.hpp"
#include "holdfast/spi/bounded_time.hpp"

namespace holdfast::redlock {
namespace {

std::string_view behind_letter(const Reply& r) noexcept {
    return r.text.size() > 2 ? std::string_view(r.text).substr(2) : std::string_view();
}

// The script sees to it; but a false one would be the token of this and of every later grant.
std::optional<std::uint64_t> token_from(std::string_view text) noexcept {
    constexpr std::uint64_t largest = 9'999'000'000'000'000;
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size() || n > largest)
        return std::nullopt;
    return n;
}

}  // namespace

Vote vote_from(const Reply& r, bool plain) {
    using Kind = Vote::Kind;
    if (r.is(Reply::Type::error)) {
        const error_code ec = resp::from_reply(r.text);
        // What a node may answer at another time is a node that is missing now.
        return {.kind = ec == errc::unavailable ? Kind::missing : Kind::refused,
                .why = ec,
                .words = std::string(resp::shown(r.text))};
    }
    if (plain) {
        if (r.is(Reply::Type::status)) return {.kind = Kind::granted};
        if (r.is(Reply::Type::nil)) return {.kind = Kind::busy};
    } else if (r.is_text() && !r.text.empty()) {
        std::string_view rest = behind_letter(r);
        switch (r.text.front()) {
            case 'g':
            case 'G':
                return {.kind = Kind::granted, .again = r.text.front() == 'G'};
            case 'h':
            case 'H':
                if (const auto token = token_from(behind_letter(r)))
                    return {.kind = Kind::low, .token = *token, .again = r.text.front() == 'H'};
                return {.kind = Kind::refused, .why = make(Error::sealed)};
            case 'b':
                return {.kind = Kind::busy,
                        .left = spi::bounded_length<milliseconds>(resp::number(resp::word(rest))),
                        .behind = rest == "0"};
            case 'u':
                return {.kind = Kind::units};
            case 'l':
                return {.kind = Kind::late};
            case 'k':
                return {.kind = Kind::refused, .why = make(Error::sealed)};
            default:
                break;
        }
    }
    return {.kind = Kind::missing, .why = resp::make(resp::Error::protocol)};
}

std::int64_t late_time(const Reply& r) noexcept {
    return resp::number(behind_letter(r));
}

void Tally::begin(std::size_t nodes) {
    votes_.clear();
    votes_.resize(nodes);
}

std::size_t Tally::count(Vote::Kind k) const noexcept {
    return static_cast<std::size_t>(
        std::count_if(votes_.begin(), votes_.end(), [k](const Vote& v) { return v.kind == k; }));
}

Tally::Verdict Tally::verdict() const noexcept {
    const std::size_t quorum = majority(votes_.size());
    const std::size_t granted = count(Vote::Kind::granted), low = count(Vote::Kind::low);
    const std::size_t waiting = count(Vote::Kind::waiting), busy = count(Vote::Kind::busy);
    if (granted >= quorum) return Verdict::granted;
    if (granted + waiting >= quorum) return Verdict::open;
    if (granted + low >= quorum) return Verdict::raise;
    if (granted + low + waiting >= quorum) return Verdict::open;
    // It cannot be ours any more. Enough of them answered, or will have: then it is contended.
    if (busy > 0 && granted + low + busy >= quorum) return Verdict::contended;
    if (busy > 0 && granted + low + busy + waiting >= quorum) return Verdict::open;
    return Verdict::no_quorum;
}

std::uint64_t Tally::next_token() const noexcept {
    std::uint64_t highest = 0;
    for (const Vote& v : votes_)
        highest = std::max(highest, v.token);
    return highest + 1;
}

milliseconds Tally::busy_for() const noexcept {
    milliseconds least(-1);
    for (const Vote& v : votes_)
        if (v.kind == Vote::Kind::busy && !v.behind && v.left >= milliseconds(0) &&
            (least < milliseconds(0) || v.left < least))
            least = v.left;
    return least;
}

bool Tally::free_for_others() const noexcept {
    const auto kept = std::count_if(votes_.begin(), votes_.end(), [](const Vote& v) {
        return v.kind == Vote::Kind::busy && v.left == milliseconds(-2);
    });
    return static_cast<std::size_t>(kept) >= majority(votes_.size());
}

error_code Tally::why() const noexcept {
    const std::size_t quorum = majority(votes_.size());
    // The same refusal by so many that the others cannot be a majority.
    for (const Vote& v : votes_) {
        if (v.kind != Vote::Kind::refused && v.kind != Vote::Kind::missing) continue;
        if (!v.why || v.why == errc::unavailable || v.why == errc::no_quorum) continue;
        const auto same = std::count_if(votes_.begin(), votes_.end(), [&](const Vote& o) {
            return o.why.default_error_condition() == v.why.default_error_condition() && o.why;
        });
        if (static_cast<std::size_t>(same) > votes_.size() - quorum) return v.why;
    }
    return make(Error::no_quorum);
}

std::string Tally::words(const Voters& voters, boot_clock::time_point now) const {
    const std::size_t held = count(Vote::Kind::granted) + count(Vote::Kind::low);
    std::string out = std::to_string(held) + " of " + std::to_string(votes_.size()) +
                      " nodes granted it, " + std::to_string(voters.quorum()) + " are needed";
    for (std::size_t i = 0; i < votes_.size(); ++i) {
        const Vote& v = votes_[i];
        out += "; " + voters.where(i) + ": ";
        switch (v.kind) {
            case Vote::Kind::granted:
            case Vote::Kind::low:
                out += "granted";
                break;
            case Vote::Kind::busy:
            case Vote::Kind::units:
                out += "held by another client";
                break;
            case Vote::Kind::waiting:
                out += "no answer yet";
                break;
            case Vote::Kind::late:
                out += "the request arrived too late";
                break;
            case Vote::Kind::missing:
            case Vote::Kind::refused:
                if (!v.words.empty())
                    out += v.words;
                else if (const auto trouble = voters.trouble(i, now); !trouble.empty())
                    out += trouble;
                else
                    out += v.why ? v.why.message() : "not asked";
                break;
        }
    }
    return out;
}

std::int64_t middle(std::span<std::int64_t> clocks, std::int64_t own) noexcept {
    std::sort(clocks.begin(), clocks.end());
    const std::size_t half = clocks.size() / 2;
    return clocks.size() % 2 == 1 ? clocks[half] : std::clamp(own, clocks[half - 1], clocks[half]);
}

void Released::add(const Reply& r) noexcept {
    if (!r.is(Reply::Type::integer)) return;
    ++(r.integer == 1 ? ones : r.integer == 2 ? twos : zeros);
}

ReleaseResult Released::result(std::size_t nodes) const noexcept {
    const std::size_t quorum = majority(nodes);
    if (answered() < quorum) return ReleaseResult::unreachable;
    // Nodes that did not answer may have been among those that held it.
    if (ones > 0 && ones + (nodes - answered()) >= quorum) return ReleaseResult::released;
    if (twos >= quorum) return ReleaseResult::owned_by_other;
    return ReleaseResult::already_expired;
}

}  // namespace holdfast::redlock
