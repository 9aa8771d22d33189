// Which callers of this client wait for which name, and whether it may be free by now. While
// nothing in the file changed, a look costs one PRAGMA data_version, however many wait.
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

    /// True when another owner surely holds the name, since nothing changed since it was read:
    /// answers the step without a request. Call refresh() first.
    bool answers(Step&) const;
    /// Reads whether another connection wrote since the last call; if so, forgets what was known.
    void refresh(Connection&);
    /// Forgets what was known.
    void forget() noexcept;

    /// Records a finished step: adds waiters, removes those that leave or were granted. False when
    /// nothing is new: a known waiter got "busy" again.
    bool record(const Step&);
    /// The name was read with this state.
    void seen(const std::string& key, const spi::NameState&, const sql::Columns&);

    /// Owners to notify: for each name that is free now, the one that waits longest, or all that
    /// may come in beside others.
    std::vector<std::string> look_around(Connection&);
    /// Until when only a change in the file can change anything; boot time in us.
    std::int64_t next_expiry() const noexcept { return next_expiry_; }

private:
    struct Name {
        std::deque<std::string> line;
        std::string holder;           ///< keeps all others out; empty: read the table
        std::int64_t held_until = 0;  ///< nothing happens before; 0: unknown
    };
    void leave(const std::string& owner);
    void held(Name&, std::string owner, std::int64_t left_us);

    std::unordered_map<std::string, Name> names_;
    std::unordered_map<std::string, std::string> line_of_;  // owner -> key
    std::int64_t version_ = -1, next_expiry_ = 0;
    unsigned openings_ = 0;  // of the connection that version_ is from
};

}  // namespace holdfast::sqlite
