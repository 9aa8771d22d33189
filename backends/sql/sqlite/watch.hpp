// Which callers of this client wait for which name, and whether it may be free by now. While
// nothing in the file changed, a look costs one PRAGMA data_version, however many wait.
#pragma once
#include <string>
#include <vector>

#include "../common/local_waiters.hpp"
#include "connection.hpp"
#include "steps.hpp"

namespace holdfast::sqlite {

/// Used by the worker's thread only.
class Watch {
public:
    bool empty() const noexcept { return waiters_.empty(); }
    std::size_t size() const noexcept { return waiters_.size(); }

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
    struct Nothing {};
    using Waiters = sql::LocalWaiters<std::int64_t, Nothing>;  // boot time in us; 0: unknown
    void held(Waiters::Name&, std::string owner, std::int64_t left_us);

    Waiters waiters_;
    std::int64_t version_ = -1, next_expiry_ = 0;
    unsigned openings_ = 0;  // of the connection that version_ is from
};

}  // namespace holdfast::sqlite
