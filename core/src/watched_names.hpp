// The names that this client's observers watch: the backend reports changes of a name to all its
// observers together, as long as there is one.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/net/gate.hpp"

namespace holdfast {

/// Engine thread only. Outlives what it returns.
class WatchedNames {
public:
    struct Name {
        std::uint64_t changes = 0;  ///< reported so far
        spi::net::Gate gate;        ///< opened with each, by wake_all(), and by a cancellation
    };

    /// What all observers of the name have in common. The watch ends with the last copy.
    std::shared_ptr<Name> watch(spi::Backend& backend, const std::string& name) {
        auto& known = names_[name];
        if (auto shared = known.lock()) return shared;
        const std::shared_ptr<Name> fresh(new Name, [this, &backend, name](Name* n) {
            delete n;
            names_.erase(name);
            backend.watch(name, false);
        });
        known = fresh;
        backend.watch(name, true);
        return fresh;
    }
    void changed(std::string_view name) {
        const auto at = names_.find(name);
        if (at != names_.end()) changed(at->second);
    }
    /// Requests go to another server from now on.
    void all_changed() {
        for (const auto& [name, known] : names_)
            changed(known);
    }
    /// Every observer looks what it has come to.
    void wake_all() {
        for (const auto& [name, known] : names_)
            if (const auto watched = known.lock()) watched->gate.open();
    }

private:
    static void changed(const std::weak_ptr<Name>& known) {
        const auto watched = known.lock();
        if (!watched) return;
        ++watched->changes;
        watched->gate.open();
    }

    std::map<std::string, std::weak_ptr<Name>, std::less<>> names_;
};

}  // namespace holdfast
