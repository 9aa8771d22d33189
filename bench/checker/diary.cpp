#include "checker/diary.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace holdfast::bench {

namespace {

history::Nanos nanos(boot_clock::time_point t) {
    return t.time_since_epoch().count();
}

history::Previous word(PreviousHolder previous) {
    switch (previous) {
        case PreviousHolder::none:
            return history::Previous::none;
        case PreviousHolder::released:
            return history::Previous::released;
        case PreviousHolder::abandoned:
            return history::Previous::abandoned;
        case PreviousHolder::crashed:
            return history::Previous::crashed;
        case PreviousHolder::unknown:
            break;
    }
    return history::Previous::unknown;
}

history::Answer word(ReleaseResult result) {
    switch (result) {
        case ReleaseResult::released:
            return history::Answer::released;
        case ReleaseResult::already_expired:
            return history::Answer::already_expired;
        case ReleaseResult::owned_by_other:
            return history::Answer::owned_by_other;
        case ReleaseResult::unreachable:
            break;
    }
    return history::Answer::unreachable;
}

history::Outcome word(error_code ec) {
    if (ec == errc::contended) return history::Outcome::contended;
    if (ec == errc::timed_out) return history::Outcome::timed_out;
    if (ec == errc::cancelled) return history::Outcome::cancelled;
    if (ec == errc::unavailable || ec == errc::no_quorum) return history::Outcome::unavailable;
    if (ec == errc::in_doubt) return history::Outcome::in_doubt;
    return history::Outcome::other;
}

/// What the lease says grows; the entry keeps the most of it.
void extend(Diary::Entry& entry, const Lease& lease) {
    entry.until = std::max(entry.until, nanos(lease.valid_until()));
}

}  // namespace

Diary::Diary(const std::filesystem::path& file, std::string_view who) {
    if (!file.empty()) recorder_.emplace(file, who);
}

Diary::~Diary() {
    if (std::uncaught_exceptions() > exceptions_) leave_open();
}

std::uint16_t Diary::name(std::string_view text, const Capabilities* promised) {
    if (!recorder_) return 0;
    const auto declares = [&](Capability c, history::Declared d) {
        return promised != nullptr && promised->has(c) ? d : history::declares_nothing;
    };
    return recorder_->name(text, static_cast<history::Declared>(
                                     declares(Capability::fencing, history::declares_fencing) |
                                     declares(Capability::fifo, history::declares_fifo)));
}

Diary::Entry Diary::asked(std::uint16_t name) {
    Entry entry;
    if (recorder_) entry.ticket = recorder_->invoked(name);
    return entry;
}

void Diary::in_line(const Entry& entry) {
    if (recorder_) recorder_->in_line(entry.ticket);
}

void Diary::granted(Entry& entry, const Lease& lease) {
    if (!recorder_) return;
    extend(entry, lease);
    recorder_->granted(entry.ticket, entry.until, lease.fencing_token().value, lease.owner_id(),
                       word(lease.previous_holder()));
}

void Diary::granted(Entry& entry) {
    if (!recorder_) return;
    entry.until = history::never;
    recorder_->granted(entry.ticket, entry.until, 0, {}, history::Previous::unknown);
}

void Diary::failed(const Entry& entry, error_code ec) {
    if (recorder_) recorder_->failed(entry.ticket, word(ec));
}

void Diary::believes(Entry& entry, const Lease& lease) {
    if (!recorder_) return;
    const auto before = entry.until;
    extend(entry, lease);
    if (entry.until > before) recorder_->renewed(entry.ticket, entry.until);
}

void Diary::releasing(Entry& entry, const Lease& lease, Outcome outcome) {
    extend(entry, lease);
    if (recorder_) recorder_->releasing(entry.ticket, entry.until, outcome == Outcome::abandoned);
}

void Diary::releasing(Entry& entry) {
    if (recorder_) recorder_->releasing(entry.ticket, entry.until);
}

void Diary::released(const Entry& entry, ReleaseResult result) {
    if (recorder_) recorder_->released(entry.ticket, word(result));
}

void Diary::lost(Entry& entry, const Lease& lease) {
    if (!recorder_) return;
    extend(entry, lease);
    recorder_->lost(entry.ticket, entry.until);
}

void Diary::hold(Entry& entry, Lease& lease, std::chrono::nanoseconds time) {
    const std::stop_token lost_now = lease.lost();
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock waits(mutex);
    never.wait_for(waits, lost_now, time, [] { return false; });
    if (lost_now.stop_requested()) return lost(entry, lease);
    releasing(entry, lease);
    released(entry, lease.release());
}

void Diary::leave_open() {
    if (recorder_) recorder_->leave_open();
}

}  // namespace holdfast::bench
