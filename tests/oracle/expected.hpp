// What a backend has to answer: the rules of a name, with what the backend declares to do
// otherwise.
#pragma once
#include <map>
#include <set>
#include <string>

#include "../conformance/facts.hpp"
#include "holdfast/spi/name_state.hpp"
#include "marks.hpp"
#include "operation.hpp"

namespace oracle {

using spi::NameState;

class Expected {
public:
    Expected(const suite::Facts&, const hf::Capabilities&);

    void expire(NameState::Time at);
    /// Whether an answer changes within so long.
    bool close_to_an_edge(NameState::Time now, NameState::Time edge) const;

    /// What only the backend's answer says.
    struct Heard {
        bool before = false;       ///< it counts since before the request
        NameState::Time base = 0;  ///< since when its lease counts; 0: since now
    };
    struct Attempted : NameState::Attempted {
        bool broken = false;  ///< what the server had granted to it was broken meanwhile
    };
    Attempted attempt(const NameState::Request&, const Heard&);
    /// It was granted, and broken before it heard of that: it stands in line anew.
    bool starts_over(std::string_view owner) const;
    bool waits_with_other_limit(const NameState::Request&) const;
    /// It was granted, and has not asked since.
    bool has_not_heard(std::string_view owner) const { return handed_.contains(owner); }
    void withdraw(std::string_view owner);
    NameState::Renewed renew(const NameState::Request&, const Heard&);
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
    NameState::Time release_known_until(NameState::Time lease_ends) const noexcept {
        return facts_.released_for_good ? 0 : lease_ends;
    }
    /// As the server keeps it.
    void prolonged(const NameState::Request&, const Heard&);

    suite::Facts facts_;
    NameState name_;
    std::map<std::string, Waiting, std::less<>> waiting_;
    /// With marks: they ask with their units, since they met others that do.
    std::set<std::string, std::less<>> with_units_;
    /// Granted by the server, and it does not know yet whether they have heard of it.
    std::map<std::string, NameState::Attempted, std::less<>> handed_;
    /// With a lock_delay: until when a holder believes in its lease.
    std::map<std::string, NameState::Time, std::less<>> believed_;
    Marks marks_;
    std::string first_;  ///< nobody was here before
    /// What clients remember: of what they have released, whose nodes they watch, and who was
    /// broken by what they know.
    std::map<std::string, hf::ReleaseResult, std::less<>> releases_;
    std::set<std::string, std::less<>> watches_, knows_broken_;
};

}  // namespace oracle
