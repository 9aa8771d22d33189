#include "faults/holder.hpp"

#include <holdfast/lab/wait_until.hpp>

#include "measure/patience.hpp"

namespace holdfast::bench {

double boot_ms(boot_clock::time_point at) {
    return std::chrono::duration<double, std::milli>(at.time_since_epoch()).count();
}

double boot_ms() {
    return boot_ms(boot_clock::now());
}

Holder::Holder(const Bench& bench, const Deployment& d, const std::string& name,
               const LockOptions& how, const std::filesystem::path& history)
    : diary_(history, "holder"), client_(bench.open(d)) {
    lock_ = bench.lock(client_, d, name, how);
    name_ = diary_.name(d.prefix + name, &lock_->capabilities());
}

Holder::~Holder() {
    stop_.request_stop();
    if (queued_.valid()) queued_.wait();
    callback_.reset();
    if (open_) diary_.releasing(entry_, lease_);
    diary_.leave_open();  // nobody hears what the release is answered
    lease_ = {};
    client_.close();
}

error_code Holder::acquire(milliseconds wait) {
    Diagnostics said;
    Diary::Entry entry = diary_.asked(name_);
    auto lease = lock_->acquire({.wait = wait, .diagnostics = &said}, stop_.get_token());
    const double now = boot_ms();
    words_ = said.text();
    if (!lease) {
        diary_.failed(entry, lease.error());
        return lease.error();
    }
    lease_ = std::move(*lease);
    diary_.granted(entry, lease_);
    entry_ = entry;
    open_ = true;
    *told_at_ = 0;
    callback_.emplace(lease_.lost(), Told{told_at_});
    granted_at_ = now;
    return {};
}

error_code Holder::acquire_at_last(milliseconds wait) {
    return until_answered(wait, [this](milliseconds left) { return acquire(left); });
}

bool Holder::ask(milliseconds wait) {
    const auto answer = acquire_at_last(wait);
    if (!answer) return true;
    if (answer == errc::timed_out || answer == errc::contended) return false;
    throw SelfCheck("acquire: " + answer.message() + ": " + words_);
}

void Holder::must_acquire(milliseconds wait) {
    const auto answer = acquire_at_last(wait);
    if (answer) throw SelfCheck("acquire: " + answer.message() + ": " + words_);
}

void Holder::queue(milliseconds wait) {
    queued_ = std::async(std::launch::async, [this, wait] { return acquire_at_last(wait); });
}

error_code Holder::answer() {
    return queued_.get();
}

bool Holder::believes() {
    if (!granted()) return false;
    const bool valid = lease_.valid();
    if (valid) diary_.believes(entry_, lease_);
    if (!valid && open_) {
        open_ = false;
        diary_.lost(entry_, lease_);
    }
    return valid;
}

ReleaseResult Holder::release() {
    if (open_) diary_.releasing(entry_, lease_);
    const ReleaseResult answer = lease_.release();
    if (open_) diary_.released(entry_, answer);
    open_ = false;
    return answer;
}

Overlap watch(Holder& first, Holder& second, milliseconds cap) {
    Overlap found;
    const bool ended = lab::reached(
        [&] {
            const double now = boot_ms();
            if (!first.believes()) return true;
            if (second.believes()) found = {true, now - second.granted_ms()};
            return false;
        },
        cap);
    if (!ended) throw SelfCheck("the first holder still holds: nothing told it");
    return found;
}

void Tally::add(const Overlap& overlap) {
    ++runs;
    if (!overlap.seen) return;
    ++two_holders;
    overlap_ms.push_back(overlap.ms);
}

void Tally::add_tokens(FencingToken earlier, FencingToken later) {
    if (later.value <= earlier.value) ++tokens_back;
}

std::filesystem::path history_of(const Bench& bench, const SetUp& set_up, const Deployment& d,
                                 const char* who) {
    const auto file = set_up.scenario + "-" + who;
    if (set_up.safe) return bench.history(d, file);
    return bench.histories.file(d.backend, set_up.scenario + ": " + set_up.variant,
                                Promise::nothing, file);
}

void report(Bench& bench, const SetUp& set_up, const Tally& tally) {
    if (tally.runs == 0) return;
    Row row;
    row.scenario = set_up.scenario;
    row.backend = set_up.backend;
    row.variant = set_up.variant;
    row.n = tally.runs;
    row.note = "of " + std::to_string(tally.runs) + " runs; " +
               (set_up.safe ? "" : "there to be caught; ") + set_up.note;
    const auto count = [&](const char* metric, std::size_t value) {
        row.metric = metric;
        row.status = set_up.safe && value > 0 ? Status::violated : Status::ok;
        bench.add_value(row, static_cast<double>(value));
    };
    count("runs with two holders", tally.two_holders);
    count("runs with a token going back", tally.tokens_back);
    if (tally.overlap_ms.empty()) return;
    row.status = Status::ok;
    row.metric = "time with two holders";
    row.unit = "ms";
    bench.add(row, spread_of(tally.overlap_ms));
}

void report(Bench& bench, const SetUp& set_up, const std::vector<Fate>& all, int ttl_ms,
            const char* kept_note, const char* again_metric, const char* again_note) {
    Row row;
    row.scenario = set_up.scenario;
    row.backend = set_up.backend;
    row.variant = set_up.variant;
    row.x = ttl_ms;
    row.n = all.size();
    double kept = 0;
    std::vector<double> told, again;
    for (const Fate& fate : all) {
        kept += fate.kept ? 1 : 0;
        if (fate.told_ms > 0) told.push_back(fate.told_ms);
        again.push_back(fate.again_ms);
    }
    row.metric = "runs in which the holder kept its lease";
    row.note = kept_note;
    bench.add_value(row, kept);
    row.unit = "ms";
    row.note = "the ttl is x ms";
    row.metric = "time until the holder was told";
    if (!told.empty()) bench.add(row, spread_of(told));
    row.metric = again_metric;
    row.note = again_note;
    bench.add(row, spread_of(again));
}

void line_up(Holder& first, Holder& second, milliseconds cap) {
    first.must_acquire(cap);
    const double granted_until = first.promised_until_ms();
    second.queue(cap);
    lab::wait_until([&] { return second.queued() && first.promised_until_ms() > granted_until; },
                    cap, "a renewed lease, and somebody who waits");
}

}  // namespace holdfast::bench
