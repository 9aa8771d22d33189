// What each holder is told of the exclusive one before it: docs/guarantees.md says what
// previous_holder() means, and here stands how each of them ended. Tokens give their order.
#pragma once
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "holdfast/lease.hpp"
#include "world.hpp"

namespace holdfast::sim {

class Succession {
public:
    explicit Succession(World& w) : world_(w) {}

    /// Its client knows of this grant, asked for then. Answers what is wrong, in words.
    std::string granted(const Belief&, Nanos asked);
    /// Its release begins; `lost`: too late.
    void let_go(const Belief&, Outcome, bool lost);
    void comes_back(const std::string& owner);
    void answered(const std::string& owner, ReleaseResult, bool lost);
    void downgraded(const std::string& owner, bool answered);
    /// An acquisition, asked for then, ended without a lease.
    void failed(const Process& client, std::size_t name, Mode, Nanos asked);

    /// All of several names are asked for: until it has them, it may hold some and let go of them.
    struct Set {
        std::vector<std::size_t> names;
        Nanos asked, ended = never;
        bool lost = false;  ///< a part of it, meanwhile
    };
    Set& begin(std::vector<std::size_t> names);
    void ended(Set&, error_code);

private:
    using Ends = std::set<PreviousHolder>;
    /// An exclusive holder.
    struct Writer {
        std::string owner;
        Nanos learnt = 0;                     ///< of its grant
        std::optional<Outcome> outcome = {};  ///< none: it has not let go
        Nanos left = 0;                       ///< when it did
        std::optional<ReleaseResult> answer = {};
        bool lost = false;    ///< before that
        bool late = false;    ///< its release may come to the server after the end of its validity
        bool broken = false;  ///< perhaps
        /// Downgraded.
        enum class Less : std::uint8_t { no, perhaps, yes } less = Less::no;
    };
    /// An acquisition without a lease, of which the server may have known more.
    struct Failure {
        std::size_t name;
        Mode mode;
        Nanos ended;
        bool quiet;  ///< its client heard all that the server knew
    };
    using Writers = std::map<std::uint64_t, Writer>;  ///< by token
    Ends ends_of(const Writer&) const;
    Ends allowed(const Belief&, Nanos asked) const;
    /// Another may have held it in this mode since, and was never told, or was cut short.
    bool may_have_had_another(const Belief&, Mode, Nanos since) const;
    /// An earlier try of its own may have been granted, unheard, and have ended before a reader
    /// came: the server no longer knows whose it was.
    bool may_have_had_it(const Belief&, Nanos asked) const;
    bool quiet_since(Nanos) const;
    /// What the server has granted to this client since then, it has learnt in time.
    bool heard_since(const Process& client, Nanos) const;
    Ends ends_of_sets(const Belief&, Nanos since) const;
    Writer* find(const std::string& owner);

    World& world_;
    std::map<std::size_t, Writers> writers_;
    std::map<std::size_t, Nanos> read_;  ///< when a reader of that name last learnt of its grant
    std::vector<Failure> failures_;
    std::list<Set> sets_;
};

}  // namespace holdfast::sim
