// The tokens of a schedule: each of the rules, and what the backend has told in its place.
#pragma once
#include <map>
#include <string>

#include "../conformance/facts.hpp"

namespace oracle {

class Tokens {
public:
    explicit Tokens(const suite::Facts& facts)
        : readers_in_any_order_(facts.readers_in_any_order) {}

    struct Told {
        std::uint64_t value;
        bool reads;
    };
    /// What is wrong with the token of a grant; empty: nothing. A repeated grant has its token
    /// again, a new one a higher one; permits have none.
    std::string wrong(std::int64_t of_rules, const Told& told) {
        if (of_rules == 0) return told.value != 0 ? ", with a token" : "";
        const auto [known, is_new] = told_.emplace(of_rules, told);
        if (!is_new) return told.value != known->second.value ? ", with another token" : "";
        // A grant may be told behind one that came later.
        for (const auto& [other, its] : told_)
            if (other < of_rules ? !follows(told, its) : other > of_rules && !follows(its, told))
                return ", with a token in the wrong order";
        return "";
    }

private:
    /// Readers that hold at the same time may have the same.
    bool follows(const Told& next, const Told& before) const {
        if (!next.reads || !before.reads) return next.value > before.value;
        return readers_in_any_order_ || next.value >= before.value;
    }

    const bool readers_in_any_order_;
    std::map<std::int64_t, Told> told_;
};

}  // namespace oracle
