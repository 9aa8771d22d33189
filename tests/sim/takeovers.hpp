// What deployments share whose servers take each other's place: until when two holders are admitted
// (class D of docs/guarantees.md), what one client cannot reach meanwhile, and what is still to
// come of a takeover.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "deployments.hpp"

namespace holdfast::sim {

class Takeovers {
public:
    explicit Takeovers(Kernel& k) : kernel_(k) {}

    /// Of the run's locks: how long one of them may be held, or stay closed.
    void begin(const World& w) {
        ttl_ = w.ttl.count() * ms;
        for (const Name& n : w.names)
            longest_pause_ = std::max({longest_pause_, n.options.lock_delay.count() * ms,
                                       n.options.min_hold.count() * ms});
    }
    Nanos ttl() const { return ttl_; }
    /// Deployment::rest(): a release may have been `lost` with the last writes.
    Nanos rest(bool lost) const { return 1500 * ms + (lost ? ttl_ + longest_pause_ : 0); }

    void admit_overlap() { overlaps_until_ = never; }
    /// From now on nobody is granted anything by the former primary.
    void end_overlap() {
        // Clients' clocks may be slower, and what was closed may be forgotten.
        if (overlaps_until_ == never)
            overlaps_until_ = kernel_.now() + ttl_ + ttl_ / 50 + longest_pause_ + 20 * ms;
    }
    bool may_overlap() const { return kernel_.now() < overlaps_until_; }

    /// A client does not reach these servers while the fault lasts.
    void split(const Fault& f, std::vector<std::size_t> beyond) {
        split_by_ = &f;
        beyond_ = std::move(beyond);
    }
    bool splits(const Fault& f) const { return split_by_ == &f; }
    std::vector<std::size_t> beyond(const Fault& f) const {
        return splits(f) ? beyond_ : std::vector<std::size_t>();
    }

    void later(Nanos after, std::function<void()> done) {
        ++settling_;
        kernel_.after(after, [this, done = std::move(done)] {
            --settling_;
            done();
        });
    }
    /// Something is still to come.
    bool settling() const { return settling_ > 0; }

private:
    Kernel& kernel_;
    Nanos ttl_ = 0, longest_pause_ = 0, overlaps_until_ = 0;
    const Fault* split_by_ = nullptr;
    std::vector<std::size_t> beyond_;
    unsigned settling_ = 0;
};

}  // namespace holdfast::sim
