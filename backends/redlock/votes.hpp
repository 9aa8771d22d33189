// Counting: what each node said in one round, and what follows from it. No sockets, no clock: the
// engine and lanes count with the same code, and a test can try every order of answers.
#pragma once
#include <boost/container/small_vector.hpp>
#include <span>
#include <string>

#include "../redis/node.hpp"
#include "holdfast/lease.hpp"
#include "voters.hpp"

namespace holdfast::redlock {

using redis::Reply;

struct Vote {
    enum class Kind : std::uint8_t {
        waiting,  ///< asked, no answer yet
        granted,  ///< taken, and the token is written
        low,      ///< taken, but the token was too low
        busy,     ///< somebody else's
        units,    ///< readers hold or wait: it wants to be asked with units
        missing,  ///< no answer, or it may not vote
        late,     ///< the request came too late by the node's clock, and nothing was done
        refused   ///< it answered that it will not
    };
    Kind kind = Kind::waiting;
    std::uint64_t token = 0;  ///< low: the highest there
    milliseconds left{-1};    ///< busy: for how long still; negative: unknown
    error_code why{};         ///< missing, refused
    std::string words{};      ///< refused, missing
    bool holds() const noexcept { return kind == Kind::granted || kind == Kind::low; }
};

/// Reads an answer to `enter`, or with `fencing=off` to SET.
Vote vote_from(const Reply&, bool plain);
/// The time in a late answer: ms of the node's clock.
std::int64_t late_time(const Reply&) noexcept;

/// One round of an acquire.
class Tally {
public:
    void begin(std::size_t nodes);
    void set(std::size_t node, Vote v) { votes_[node] = std::move(v); }
    const Vote& at(std::size_t node) const noexcept { return votes_[node]; }
    std::size_t count(Vote::Kind) const noexcept;

    enum class Verdict : std::uint8_t {
        open,       ///< more answers are needed
        granted,    ///< a majority has taken it and written the token
        raise,      ///< a majority has taken it, but the token has to be higher than next_token()-1
        contended,  ///< it cannot be ours now: somebody else's, or split between several
        no_quorum   ///< too few nodes answered
    };
    Verdict verdict() const noexcept;
    std::uint64_t next_token() const noexcept;
    /// When a busy lock may be free at the latest, as far as the nodes know; negative: unknown.
    milliseconds busy_for() const noexcept;
    /// Why there is no quorum: what a node refuses for good, else no_quorum.
    error_code why() const noexcept;
    /// One sentence that says what every node said.
    std::string words(const Voters&, boot_clock::time_point now) const;

private:
    boost::container::small_vector<Vote, 7> votes_;
};

/// The middle one of the nodes' clocks; `own`, the client's, decides between the two in the middle
/// of an even number. Right where fewer than half of those that count are wrong, in either
/// direction.
std::int64_t middle(std::span<std::int64_t> clocks, std::int64_t own) noexcept;

/// What a release came to: `ones` deleted it, `twos` have somebody else's, `zeros` nothing.
struct Released {
    std::size_t ones = 0, twos = 0, zeros = 0;
    void add(const Reply&) noexcept;
    std::size_t answered() const noexcept { return ones + twos + zeros; }
    /// unreachable: fewer than a majority answered.
    ReleaseResult result(std::size_t nodes) const noexcept;
};

}  // namespace holdfast::redlock
