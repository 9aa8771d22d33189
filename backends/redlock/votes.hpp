// Counting: what each node said in one round, and its result. No sockets or clock, so the engine
// and lanes share the code, and a test can try every order of answers.
#pragma once
#include <boost/container/small_vector.hpp>
#include <span>
#include <string>

#include "../resp/codec.hpp"
#include "holdfast/lease.hpp"
#include "voters.hpp"

namespace holdfast::redlock {

using resp::Reply;

struct Vote {
    enum class Kind : std::uint8_t {
        waiting,  ///< asked, no answer yet
        granted,  ///< acquired, and the token was written
        low,      ///< acquired, but the token was too low
        busy,     ///< held by another owner
        units,    ///< readers hold or wait: ask again with units
        missing,  ///< no answer, or it may not vote
        late,     ///< the request came too late by the node's clock, and nothing was done
        refused   ///< the node refuses
    };
    Kind kind = Kind::waiting;
    std::uint64_t token = 0;  ///< low: the highest there
    milliseconds left{-1};    ///< busy: for how long; -2: free, for others; -1: unknown
    bool behind = false;      ///< busy: others came before
    bool again = false;       ///< granted, low: it was there before
    error_code why{};         ///< missing, refused
    std::string words{};      ///< refused, missing
    bool holds() const noexcept { return kind == Kind::granted || kind == Kind::low; }
};

/// Reads an answer to `enter`, or with `fencing=off` to SET.
Vote vote_from(const Reply&, bool plain);
/// The time in a late answer: ms of the node's clock.
std::int64_t late_time(const Reply&) noexcept;

/// The votes in one round of an acquisition.
class Tally {
public:
    void begin(std::size_t nodes);
    void set(std::size_t node, Vote v) { votes_[node] = std::move(v); }
    const Vote& at(std::size_t node) const noexcept { return votes_[node]; }
    std::size_t count(Vote::Kind) const noexcept;

    enum class Verdict : std::uint8_t {
        open,       ///< more answers are needed
        granted,    ///< a majority has granted it and written the token
        raise,      ///< a majority has granted it, but needs a token of next_token() or higher
        contended,  ///< it is held by another owner, or split between several
        no_quorum   ///< too few nodes answered
    };
    Verdict verdict() const noexcept;
    std::uint64_t next_token() const noexcept;
    /// Within which time a busy lock is free for this one, as far as the nodes know; negative:
    /// unknown.
    milliseconds busy_for() const noexcept;
    /// A majority keeps it free for others, so nobody holds it.
    bool free_for_others() const noexcept;
    /// Why there is no quorum: a node's final refusal, else no_quorum.
    error_code why() const noexcept;
    /// What every node said, in one sentence.
    std::string words(const Voters&, boot_clock::time_point now) const;

private:
    boost::container::small_vector<Vote, 7> votes_;
};

/// The median of the nodes' clocks. With an even number, `own` (the client's) decides between the
/// two in the middle. Right if fewer than half of those counted are wrong, in either direction.
std::int64_t middle(std::span<std::int64_t> clocks, std::int64_t own) noexcept;

/// The result of a release: `ones` deleted it, `twos` have another owner's, `zeros` have nothing.
struct Released {
    std::size_t ones = 0, twos = 0, zeros = 0;
    void add(const Reply&) noexcept;
    std::size_t answered() const noexcept { return ones + twos + zeros; }
    /// `unreachable` when fewer than a majority answered.
    ReleaseResult result(std::size_t nodes) const noexcept;
};

}  // namespace holdfast::redlock
