// What the adapters behind std's interfaces have alike: how they get their Lock, and what they
// throw.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/client.hpp"

namespace holdfast {

/// False when another client holds the lock. Throws on faults.
inline bool was_granted(const result<Lease>& lease, const char* adapter) {
    if (lease) return true;
    if (lease.error() == errc::contended || lease.error() == errc::timed_out) return false;
    throw boost::system::system_error(lease.error(), adapter);
}

/// Throws what Client::make_lock answers instead of a Lock.
inline std::unique_ptr<Lock> made_by(const Client& client, std::string_view name,
                                     const LockOptions& options, const std::string& adapter) {
    Diagnostics why;
    auto lock = client.make_lock(name, options, &why);
    if (!lock)
        throw boost::system::system_error(
            lock.error(), why.entries.empty() ? adapter : adapter + ": " + why.text());
    return std::move(*lock);
}

inline LockOptions with_kind(LockOptions options, Kind kind, std::uint32_t limit = 1) {
    options.kind = kind;
    options.limit = limit;
    return options;
}

inline std::unique_ptr<Lock> of_kind(std::unique_ptr<Lock> lock, Kind kind, const char* adapter) {
    if (lock->kind() != kind)
        throw boost::system::system_error(make_error_code(errc::not_supported), adapter);
    return lock;
}

}  // namespace holdfast
