// What a backend adds to the suite: tests/backends/<name>/ground.cpp has its harness, what it has
// to promise, and what is heard of a break. A variant of it is a ground of its own,
// "<name>-<variant>".
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "facts.hpp"
#include "harness.hpp"

namespace suite {

using C = hf::Capability;
using hf::errc;

struct Ground {
    std::function<std::unique_ptr<Harness>()> make;
    std::set<C> promises;  ///< of those that the backend and its options decide
    AfterBreak after_break;
};

/// By name. What a build leaves out is not there.
std::map<std::string, Ground>& grounds();

/// Adds one before main().
struct AddGround {
    AddGround(std::string name, std::function<std::unique_ptr<Harness>()> make,
              std::set<C> promises, AfterBreak after_break) {
        grounds().emplace(std::move(name),
                          Ground{std::move(make), std::move(promises), after_break});
    }
};

/// Those that depend on nothing but the backend and its options; survives_* is what a server says.
inline const std::set<C> decided{
    C::fencing,         C::fifo,       C::notified, C::cross_process,   C::cross_host, C::renewal,
    C::previous_holder, C::inspect,    C::list,     C::break_lock,      C::shared,     C::semaphore,
    C::downgrade,       C::lock_delay, C::min_hold, C::release_request, C::watch};

/// All of `decided` but these.
inline std::set<C> all_but(const std::set<C>& missing) {
    auto out = decided;
    for (const C c : missing)
        out.erase(c);
    return out;
}

/// As all_but, of a mode that has mutexes only.
inline std::set<C> mutexes_but(std::set<C> missing) {
    missing.insert({C::shared, C::semaphore, C::downgrade, C::lock_delay, C::min_hold,
                    C::release_request, C::watch});
    return all_but(missing);
}

}  // namespace suite
