// What a server knows of the holders before, where each exclusive holder leaves a mark of its own:
// one that is found belongs to a holder that never released.
#pragma once
#include <set>
#include <string>

#include "holdfast/spi/name_state.hpp"

namespace oracle {

class Marks {
public:
    using Time = holdfast::spi::NameState::Time;

    /// What this owner finds.
    holdfast::PreviousHolder before(std::string_view owner) const {
        const bool others = owners_.size() > (owners_.contains(owner) ? 1U : 0U);
        return others ? holdfast::PreviousHolder::crashed : last_;
    }
    void leave(std::string_view owner) { owners_.emplace(owner); }
    void take_back(std::string_view owner) {
        if (const auto own = owners_.find(owner); own != owners_.end()) owners_.erase(own);
    }
    /// A holder has released, or reads from now on: all marks are its own and older ones. A release
    /// as done is known until then; 0: for good.
    void release(holdfast::Outcome outcome, Time known_until) {
        const bool done = outcome == holdfast::Outcome::done;
        owners_.clear();
        last_ = done ? holdfast::PreviousHolder::released : holdfast::PreviousHolder::abandoned;
        known_until_ = done ? known_until : 0;
    }
    void expire(Time now) {
        if (known_until_ == 0 || now < known_until_) return;
        last_ = holdfast::PreviousHolder::none;
        known_until_ = 0;
    }
    Time known_until() const noexcept { return known_until_; }

private:
    std::set<std::string, std::less<>> owners_;
    holdfast::PreviousHolder last_ = holdfast::PreviousHolder::none;
    Time known_until_ = 0;  ///< 0: for good
};

}  // namespace oracle
