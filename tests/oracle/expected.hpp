// What a backend has to answer: the rules of a name, with what the backend declares to do
// otherwise.
#pragma once
#include <map>
#include <set>
#include <string>

#include "../conformance/facts.hpp"
#include "holdfast/spi/name_state.hpp"
#include "operation.hpp"

namespace oracle {

using spi::NameState;

class Expected {
public:
    Expected(const suite::Facts&, const hf::Capabilities&);

    void expire(NameState::Time at) { name_.expire(at); }

    /// `by_message`: the backend has answered with what it was handed before.
    struct Attempted : NameState::Attempted {
        bool broken = false;  ///< what the server had granted to it was broken meanwhile
    };
    Attempted attempt(const NameState::Request&, bool by_message);
    void withdraw(std::string_view owner);
    NameState::Renewed renew(const NameState::Request&);
    NameState::Released release(const NameState::Request&);
    spi::Survey tell(const hf::HolderFilter&, spi::Tell);

    const NameState& name() const noexcept { return name_; }
    NameState::Holding* find(std::string_view owner) noexcept { return name_.find(owner); }

private:
    struct Waiting {
        spi::Units units;
        hf::milliseconds ttl{}, lock_delay{}, min_hold{};
    };
    bool keeps_broken() const noexcept { return facts_.broken_for.count() > 0; }
    NameState::Attempted attempt_at_once(const NameState::Request&);
    void keep_place(const NameState::Request&);
    bool leaves_mark(const NameState::Request&);
    /// To those at the head of the line that fit, and came before; 0: to all.
    void hand_over(NameState::Time ahead_of = 0);
    void prolonged(std::string_view owner);

    suite::Facts facts_;
    NameState name_;
    std::map<std::string, Waiting, std::less<>> waiting_;
    /// With marks: they ask with their units, since they met others that do.
    std::set<std::string, std::less<>> with_units_;
    /// Granted by the server, and it does not know yet whether they have heard of it.
    std::map<std::string, NameState::Attempted, std::less<>> handed_;
};

}  // namespace oracle
