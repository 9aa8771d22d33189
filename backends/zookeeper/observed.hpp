// The names that this client observes. A look at such a name watches what it lists, so nothing is
// missed between the look and the watch; what a watch tells is passed on to core, which looks
// again.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "holdfast/spi/backend.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

/// Engine thread only.
class Observed {
public:
    explicit Observed(spi::BackendEvents& events) : events_(&events) {}

    /// `parent`: the node of the name's line.
    void set(const std::string& parent, std::string_view name, bool on) {
        if (on)
            names_[parent] = name;
        else
            names_.erase(parent);
    }
    bool empty() const noexcept { return names_.empty(); }
    /// Whether a list of this node is to be watched: a line, or a folder of permits.
    bool has(std::string_view path) const { return find(path) != names_.end(); }
    void changed(std::string_view path) const {
        const auto at = find(path);
        if (at != names_.end()) events_->changed(at->second);
    }
    /// The watches of a connection or a session may have ended.
    void all_changed() const {
        for (const auto& [parent, name] : names_)
            events_->changed(name);
    }

private:
    using Names = std::map<std::string, std::string, std::less<>>;
    Names::const_iterator find(std::string_view path) const {
        if (names_.empty()) return names_.end();
        const auto at = names_.find(path);
        const auto slash = path.rfind('/');
        if (at != names_.end() || slash == path.npos) return at;
        const std::string_view folder = path.substr(slash + 1);
        const bool of_permits = folder == permits_folder || folder == turns_folder;
        return of_permits ? names_.find(path.substr(0, slash)) : names_.end();
    }

    spi::BackendEvents* const events_;
    Names names_;  ///< by the node of the line
};

}  // namespace holdfast::zookeeper
