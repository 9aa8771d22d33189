// One who wants the lock, in the bench's own process. What he believes is read from his lease, not
// from who was granted what.
#pragma once
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "bench.hpp"
#include "checker/diary.hpp"

namespace holdfast::bench {

/// Milliseconds on CLOCK_BOOTTIME, which all processes of the machine share.
double boot_ms();
double boot_ms(boot_clock::time_point);

class Holder {
public:
    /// `history`: a file for what it does with the lock; empty: not recorded. Errors: SelfCheck.
    Holder(const Bench&, const Deployment&, const std::string& name, const LockOptions&,
           const std::filesystem::path& history = {});
    ~Holder();
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    /// The answer to one acquire; when it is no error, the lease is here from then on.
    error_code acquire(milliseconds wait);
    /// The same, asked again while the server does not answer.
    error_code acquire_at_last(milliseconds wait);
    /// The same; false: somebody else has it. Errors: SelfCheck for any other answer.
    bool ask(milliseconds wait);
    /// The same when anything but a grant would make the run worthless. Errors: SelfCheck.
    void must_acquire(milliseconds wait);
    /// Acquires on a thread of its own, which ends with this object at the latest after `wait`.
    void queue(milliseconds wait);
    bool queued() const { return client_.stats().waiting > 0; }
    /// Whether what was queued for has been granted.
    bool granted() const { return granted_at_.load() > 0; }
    /// Waits for the end of what was queued.
    error_code answer();

    /// Looks, and records what it saw.
    bool believes();
    double granted_ms() const { return granted_at_; }
    double promised_until_ms() const { return boot_ms(lease_.valid_until()); }
    const Lease& lease() const { return lease_; }
    /// When lost() was requested; 0: not yet.
    double told_ms() const { return *told_at_; }
    const std::string& words() const { return words_; }
    Stats stats() const { return client_.stats(); }
    ReleaseResult release();

private:
    struct Told {
        std::shared_ptr<std::atomic<double>> at;
        void operator()() const { *at = boot_ms(); }
    };
    Diary diary_;
    std::uint16_t name_ = 0;
    Diary::Entry entry_;
    bool open_ = false;  ///< in the diary: granted, and not released or lost
    Client client_;
    std::unique_ptr<Lock> lock_;
    Lease lease_;
    std::string words_;
    std::atomic<double> granted_at_{0};
    std::shared_ptr<std::atomic<double>> told_at_ = std::make_shared<std::atomic<double>>(0);
    std::optional<std::stop_callback<Told>> callback_;
    std::stop_source stop_;
    std::future<error_code> queued_;
};

/// What was seen of two holders at one time.
struct Overlap {
    bool seen = false;
    double ms = 0;  ///< from the second grant to the last look at which both believed
};

/// Looks at both, at the same moment, until the first does not believe any more. Errors: SelfCheck
/// when it still does after `cap`.
Overlap watch(Holder& first, Holder& second, milliseconds cap);

/// The first acquires and renews, the second waits for the same lock. Errors: SelfCheck, LabError.
void line_up(Holder& first, Holder& second, milliseconds cap);

/// What became of a lease while a server was lost.
struct Fate {
    bool kept = false;
    double told_ms = 0;   ///< after the fault; 0: never
    double again_ms = 0;  ///< until the next grant
};

/// Runs of one set-up.
struct Tally {
    std::size_t runs = 0, two_holders = 0, tokens_back = 0;
    std::vector<double> overlap_ms;

    void add(const Overlap&);
    /// For backends with tokens: a later grant's token that is not higher went back.
    void add_tokens(FencingToken earlier, FencingToken later);
};

struct SetUp {
    std::string scenario, backend, variant;
    bool safe = false;  ///< two holders would be a violated guarantee
    std::string note;
};

/// A file for one more holder of the set-up on this deployment. Where it is safe that of the
/// deployment; else one of its own, where what the checker finds is expected.
std::filesystem::path history_of(const Bench&, const SetUp&, const Deployment&, const char* who);

/// Adds rows "runs with two holders", "runs with a token going back", "time with two holders".
void report(Bench&, const SetUp&, const Tally&);

/// Adds rows of how often the lease was kept, when its holder was told, and, as `again`, the time
/// until the next grant.
void report(Bench&, const SetUp&, const std::vector<Fate>&, int ttl_ms, const char* kept_note,
            const char* again, const char* again_note);

}  // namespace holdfast::bench
