// Which callers of this client wait for which name, and whether it may be free by now. A look costs
// one PRAGMA data_version while nothing in the file changed, however many wait.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "connection.hpp"
#include "steps.hpp"

namespace holdfast::sqlite {

/// Used by the worker's thread only.
class Watch {
public:
    bool empty() const noexcept { return names_.empty(); }
    std::size_t size() const noexcept { return line_of_.size(); }

    /// True when the name is surely held by somebody else, as nothing changed since it was read:
    /// answers the step without a request. Call refresh() first.
    bool answers(Step&) const;
    /// Reads whether another connection wrote since the last call; forgets what was known then.
    void refresh(Connection&);
    /// Forgets what was known.
    void forget() noexcept;

    /// Keeps books of a step that is done: enters waiters, takes out those that leave or were
    /// granted. False when nothing is new: a known waiter got "busy" again.
    bool record(const Step&);
    /// The name was seen like this.
    void seen(const std::string& key, const sql::NameState&, const sql::Columns&);

    /// Owners to wake: for each name that is free now, the one that waits longest; all of those
    /// that may come in beside others.
    std::vector<std::string> look_around(Connection&);
    /// Until when nothing can happen but by a change in the file; boot time in us.
    std::int64_t next_expiry() const noexcept { return next_expiry_; }

private:
    struct Name {
        std::deque<std::string> line;
        std::string holder;           ///< it keeps everybody else out; empty: ask the table
        std::int64_t held_until = 0;  ///< nothing happens before; 0: not known
    };
    void leave(const std::string& owner);
    void held(Name&, std::string owner, std::int64_t left_us);

    std::unordered_map<std::string, Name> names_;
    std::unordered_map<std::string, std::string> line_of_;  // owner -> key
    std::int64_t version_ = -1, next_expiry_ = 0;
    unsigned openings_ = 0;  // of the connection that the version is of
};

}  // namespace holdfast::sqlite
