// Spelling of enumerators in configuration, logs and reports; check of a lock's name.
#include "names.hpp"

#include <array>

#include "config/text.hpp"
#include "holdfast/capabilities.hpp"
#include "holdfast/event.hpp"
#include "holdfast/kind.hpp"
#include "holdfast/lease.hpp"

namespace holdfast {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Capability::count_)> capabilities{
    "fencing",
    "fifo",
    "notified",
    "cross_process",
    "cross_host",
    "renewal",
    "previous_holder",
    "inspect",
    "list",
    "break_lock",
    "survives_client_clock_jump",
    "survives_server_crash",
    "survives_failover",
    "shared",
    "semaphore",
    "downgrade",
    "lock_delay",
    "min_hold",
    "release_request"};

}  // namespace

std::string_view to_string(Capability c) noexcept {
    const auto i = static_cast<std::size_t>(c);
    return i < capabilities.size() ? capabilities[i] : "?";
}

std::optional<Capability> capability_from(std::string_view word) noexcept {
    for (std::size_t i = 0; i < capabilities.size(); ++i)
        if (capabilities[i] == word) return static_cast<Capability>(i);
    return std::nullopt;
}

std::string_view to_string(SafetyClass c) noexcept {
    switch (c) {
        case SafetyClass::a:
            return "A";
        case SafetyClass::b:
            return "B";
        case SafetyClass::c:
            return "C";
        case SafetyClass::d:
            return "D";
        case SafetyClass::in_process:
            return "in-process";
    }
    return "?";
}

std::string_view to_string(Kind k) noexcept {
    switch (k) {
        case Kind::mutex:
            return "mutex";
        case Kind::shared_mutex:
            return "shared_mutex";
        case Kind::semaphore:
            return "semaphore";
    }
    return "?";
}

std::string_view to_string(Mode m) noexcept {
    return m == Mode::shared ? "shared" : "exclusive";
}

std::string_view to_string(LeaseState s) noexcept {
    switch (s) {
        case LeaseState::empty:
            return "empty";
        case LeaseState::held:
            return "held";
        case LeaseState::at_risk:
            return "at risk";
        case LeaseState::lost:
            return "lost";
        case LeaseState::released:
            return "released";
    }
    return "?";
}

std::string_view to_string(PreviousHolder p) noexcept {
    switch (p) {
        case PreviousHolder::unknown:
            return "unknown";
        case PreviousHolder::none:
            return "none";
        case PreviousHolder::released:
            return "released";
        case PreviousHolder::abandoned:
            return "abandoned";
        case PreviousHolder::crashed:
            return "crashed";
    }
    return "?";
}

std::string_view to_string(Outcome o) noexcept {
    return o == Outcome::done ? "done" : "abandoned";
}

std::string_view to_string(ReleaseResult r) noexcept {
    switch (r) {
        case ReleaseResult::released:
            return "released";
        case ReleaseResult::already_expired:
            return "already expired";
        case ReleaseResult::owned_by_other:
            return "owned by other";
        case ReleaseResult::unreachable:
            return "unreachable";
    }
    return "?";
}

std::string_view to_string(Event::Kind k) noexcept {
    switch (k) {
        case Event::Kind::waiting:
            return "waiting";
        case Event::Kind::acquired:
            return "acquired";
        case Event::Kind::at_risk:
            return "at_risk";
        case Event::Kind::recovered:
            return "recovered";
        case Event::Kind::lost:
            return "lost";
        case Event::Kind::in_doubt:
            return "in_doubt";
        case Event::Kind::released:
            return "released";
        case Event::Kind::warning:
            return "warning";
        case Event::Kind::unreachable:
            return "unreachable";
        case Event::Kind::reachable:
            return "reachable";
        case Event::Kind::moved:
            return "moved";
    }
    return "?";
}

std::string_view name_fault(std::string_view name) noexcept {
    if (name.empty()) return "The lock name is empty.";
    if (name.size() > max_name) return "The lock name is longer than 512 bytes.";
    for (std::size_t i = 0; i < name.size();) {
        const std::size_t n = config::utf8_sequence(name.substr(i));
        if (n == 0) return "The lock name is not UTF-8.";
        if (name[i] == '\0') return "The lock name contains a NUL character.";
        i += n;
    }
    return {};
}

}  // namespace holdfast
