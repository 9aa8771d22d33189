// The rules for one name.
#pragma once
#include <vector>

#include "checker/check.hpp"

namespace holdfast::bench::history {

class NameCheck {
public:
    NameCheck(const History& h, const Limits& limits, Verdict& v) : h_(h), limits_(limits), v_(v) {}
    /// `acquisitions`, `writes`, `sightings`: indices of those of the name, in the files' order.
    void run(std::uint32_t name, const std::vector<std::uint32_t>& acquisitions,
             const std::vector<std::uint32_t>& writes, const std::vector<std::uint32_t>& sightings);

private:
    /// From the grant, as its process saw it, to the end of its validity or its release.
    struct Belief {
        Nanos from = 0;
        Nanos to = 0;    ///< what was promised; for a silent holder nobody saw that far
        Nanos sure = 0;  ///< just after its last sign of life, or `to`; always after `from`
        std::uint64_t token = 0;
        std::uint32_t index = 0;
    };
    struct Request {
        Nanos invoked = 0;
        Nanos answered = 0;   ///< never: not recorded
        Nanos any_until = 0;  ///< the latest answer of this request and those invoked before it
        std::uint32_t index = 0;
    };
    struct Token {
        std::uint64_t token = 0;
        std::uint32_t index = 0;
    };

    void gather(const std::vector<std::uint32_t>& acquisitions);
    void add_belief(const Acquisition&, std::uint32_t index);
    // order.cpp
    void overlaps();
    void tokens();
    void tokens_by_request();
    void repeated_tokens();
    void tell_order(const Acquisition& earlier, const Acquisition& later);
    void inversions();
    // words.cpp
    void previous_holders();
    void tell_previous(const Acquisition& before, const Acquisition& b);
    bool release_forgotten(const Acquisition& before, const Acquisition& b) const;
    void alone();
    void seen(const std::vector<std::uint32_t>& sightings);
    // stores.cpp
    void writes(const std::vector<std::uint32_t>& writes);
    void fenced(const StoreWrite&, std::uint64_t& highest);
    void unfenced(const StoreWrite&);
    const Acquisition* writer(const StoreWrite&);

    const Acquisition& at(std::uint32_t index) const { return h_.acquisitions[index]; }
    const Name& name() const { return h_.names[name_]; }
    std::string words(const Acquisition&) const;
    /// One line, made only when there is room for it.
    template <class Line>
    void tell(Trouble t, Line line) {
        if (v_.wants(t))
            v_.add(t, name().text + ": " + line());
        else
            v_.add(t);
    }

    const History& h_;
    const Limits& limits_;
    Verdict& v_;
    std::uint32_t name_ = 0;
    std::vector<Belief> beliefs_;       ///< none is empty; by from
    std::vector<std::uint32_t> empty_;  ///< granted when its validity was over already
    std::vector<Request> requests_;     ///< by invoked
    std::vector<Request> errors_;       ///< failed otherwise than `contended`; by invoked
    std::vector<Token> by_token_;       ///< of beliefs; made when a write asks
    Nanos first_unknown_ = never;  ///< earliest request of which nobody knows what became of it
    bool crossed_ = false;         ///< beliefs overlap
};

}  // namespace holdfast::bench::history
