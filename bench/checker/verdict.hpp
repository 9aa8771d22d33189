// What a check found: figures, how often each kind of trouble occurred, and the first of each in
// words.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench::history {

/// The order is that of the report.
enum class Trouble : std::uint8_t {
    // a guarantee was broken
    overlap,           ///< two processes believed at the same time to hold one name
    within_validity,   ///< granted while a holder that was never heard of again had time left
    token_order,       ///< a later grant has a token that is not greater
    token_repeated,    ///< two grants have the same token
    token_missing,     ///< no token, though the name declares them
    stale_fenced,      ///< a fenced store accepted a token below one it had accepted
    rightful_refused,  ///< a fenced store refused a token that is not below any it had accepted
    inversion,         ///< on a name that declares FIFO, granted before one that stood in line
    previous_holder,   ///< what a grant says of the holder before is not what that one recorded
    left_alone,        ///< somebody waited and nobody held, for longer than the limit asked for
    // what can happen with every guarantee kept, and has to be known
    stale_unfenced,     ///< an unfenced store accepted a write of a former holder
    held_after_error,   ///< an acquisition returned an error, and held nevertheless
    release_forgotten,  ///< a server that syncs releases later was killed before it had
    // the history itself
    torn,           ///< a file or record is cut off or damaged
    contradictory,  ///< records that cannot all be true
    other_clock,    ///< a file of another boot or time name space: its times do not compare
    count_
};
inline constexpr auto troubles = static_cast<std::size_t>(Trouble::count_);

/// "overlap", "within_validity", ...
std::string_view to_string(Trouble) noexcept;
/// In a few words, for people.
std::string_view meaning(Trouble) noexcept;

enum class Gravity : std::uint8_t { violation, observation, damage };
Gravity gravity(Trouble) noexcept;

struct Figures {
    std::uint64_t files = 0, bytes = 0, records = 0, names = 0;
    std::uint64_t acquisitions = 0, granted = 0, failed = 0;
    std::uint64_t unfinished = 0;  ///< asked and never answered: the process was ended
    std::uint64_t silent = 0;      ///< granted and never ended: the process was ended
    std::uint64_t left_out = 0;    ///< not judged, for what the last three kinds say
    std::uint64_t writes = 0, writes_unjudged = 0;
    // What was looked at: where one of these is zero, a rule had nothing to judge.
    std::uint64_t tokens_judged = 0;      ///< grants with a token
    std::uint64_t fenced_judged = 0;      ///< answers of fenced stores
    std::uint64_t unfenced_judged = 0;    ///< writes taken by unfenced stores
    std::uint64_t previous_judged = 0;    ///< words about a previous holder that is known
    std::uint64_t inversions_judged = 0;  ///< grants of those who were seen in line
    std::int64_t longest_alone_ns = 0;    ///< somebody waited, nobody held
    std::string longest_alone;            ///< the name, and from when
};

struct Finding {
    Trouble trouble{};
    std::string line;
};

class Verdict {
public:
    Figures figures;

    std::uint64_t count(Trouble t) const { return counts_[static_cast<std::size_t>(t)]; }
    std::uint64_t count(Gravity) const;
    /// The first of each kind, in the order in which they were found.
    const std::vector<Finding>& first() const { return first_; }
    /// No guarantee was broken, as far as the records go.
    bool sound() const { return count(Gravity::violation) == 0; }
    /// Nothing was found at all.
    bool clean() const;
    /// 0: sound; 1: sound as far as a damaged history says; 2: a guarantee was broken.
    int exit_code() const;

    /// True when there is room for another line of this kind; makes one pay only then.
    bool wants(Trouble t) const { return count(t) < lines_; }
    void add(Trouble, std::string line);
    /// Counts what has no room for a line.
    void add(Trouble t) { ++counts_[static_cast<std::size_t>(t)]; }
    /// How many lines of each kind are kept.
    void keep(std::uint64_t lines) { lines_ = lines; }

    std::string text() const;
    /// One object: "sound", "figures", "counts", "findings".
    std::string json() const;

private:
    std::array<std::uint64_t, troubles> counts_{};
    std::vector<Finding> first_;
    std::uint64_t lines_ = 5;
};

}  // namespace holdfast::bench::history
