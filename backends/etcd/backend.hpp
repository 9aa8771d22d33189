// The etcd backend: a key for each owner, below that of the lock, in the order of creation, as
// `etcdctl lock` and etcd's own lock service have it. A file for each thing that is done: acquire
// and stand (in line), change (a key's lease, or its units), leave, operate.
#pragma once

// A false alarm of g++ 12 about coroutine frames, whose memory Boost allocates in its own way; in
// all files that include this one.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "entering.hpp"
#include "holdfast/spi/check.hpp"
#include "leases.hpp"
#include "lines.hpp"
#include "members.hpp"

namespace holdfast::etcd {

class EtcdBackend final : public spi::Backend {
public:
    EtcdBackend(const spi::Settings&, spi::Context);
    ~EtcdBackend() override;

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 32; }

    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> renew(std::span<spi::Held* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;

    awaitable<result<Inspection>> inspect(std::string_view name, boot_clock::time_point deadline,
                                          std::string& detail) override;
    awaitable<result<std::vector<std::string>>> list(std::string_view prefix, std::size_t limit,
                                                     boot_clock::time_point deadline,
                                                     std::string& detail) override;
    awaitable<result<std::vector<Broken>>> break_lock(std::string_view name, const BreakOptions&,
                                                      boot_clock::time_point deadline,
                                                      std::string& detail) override;
    awaitable<result<std::vector<Holder>>> request_release(std::string_view name,
                                                           const HolderFilter&,
                                                           boot_clock::time_point deadline,
                                                           std::string& detail) override;
    awaitable<result<Examination>> examine(boot_clock::time_point deadline,
                                           std::string& detail) override;
    awaitable<void> close() override;
    std::uint64_t requests() const noexcept override {
        return shared_->requests.load(std::memory_order_relaxed);
    }

private:
    using Attempts = std::vector<spi::Attempt*>;
    /// Another lease for a key, and fewer units.
    struct Change {
        PlacePtr place;
        Lease lease;
        spi::Units units;
        bool grant = false;  ///< of a waiter that becomes a holder
        enum class Outcome : std::uint8_t { unknown, done, gone, revoked, other_kind } outcome{};
        PreviousHolder previous = PreviousHolder::unknown;
    };
    /// A young lease for an item of a batch, or why there is none.
    struct Leased {
        result<Lease> lease;
        std::string detail;
    };
    struct Asked {
        spi::Attempt* attempt;
        PlacePtr place;
        Lease own;
        Entering how;
        std::unique_ptr<Lines::Listing> listing;
    };
    /// What stands in a line, and how much of it holds.
    struct Standing {
        std::vector<KeyValue> all;  ///< in the order of their creation
        std::size_t holders = 0;
    };
    enum class Says : std::uint8_t { asked, revoked, gone };
    /// How a request went, beside its results.
    struct Went {
        std::int64_t revision = 0;
        bool doubt = false, repeated = false;
        std::string detail;
    };

    /// One for each, of those that `needs` names; the others get one that is none.
    template <class Item>
    awaitable<std::vector<Leased>> lease_each(std::vector<Item*>, bool (*needs)(const Place&));

    /// Of different locks, without keys yet: makes them, free or in line.
    awaitable<void> enter(Attempts, bool again);
    /// What becomes of those whose key was made, or not.
    enum class Next : std::uint8_t { nothing, stand, leave, clear };
    Next entered(const Asked&, const Result&, std::int64_t revision, std::int64_t& marker);
    /// Takes markers away that belong to nobody, and enters again.
    awaitable<void> clear(Attempts, std::vector<std::int64_t> markers);
    /// Whose keys are there: what fits is taken, the others wait.
    awaitable<void> stand(Attempts);
    awaitable<void> take(Attempts);
    /// One try, which leaves nothing behind.
    awaitable<void> give_up(spi::Attempt*);
    /// Sees to a line of which the watch may have missed something.
    awaitable<void> look_after(PlacePtr, boot_clock::time_point deadline);
    void start_over(Place&);
    void add_grave(const Place&, const Lease&, Transaction&);
    static bool is_late(const spi::Held&);
    static PlacePtr place_of(const std::shared_ptr<void>& p) {
        return std::static_pointer_cast<Place>(p);
    }
    static bool always(const Place&) { return true; }
    static bool in_doubt(const Place& p) { return p.doubt; }
    static milliseconds look_within(milliseconds ttl) noexcept {
        return std::min(milliseconds(1000), ttl / 3);
    }
    spi::Attempt::Granted granted(const spi::Attempt&, const Lease&, PreviousHolder);
    /// Attaches waiters' keys to the lease of all waiters.
    awaitable<void> adopt(const Attempts&);
    /// Attaches keys to other leases, while they are there and not revoked. The error is that of
    /// those whose outcome is unknown.
    awaitable<error_code> change(std::vector<Change>&, boot_clock::time_point deadline,
                                 std::string* detail);
    /// One request for all of these, and a result for each.
    awaitable<result<std::vector<Result>>> transact(std::vector<Transaction>,
                                                    boot_clock::time_point deadline, Went&);
    awaitable<result<Result>> ask(std::string begin, std::string end, std::int64_t limit,
                                  bool keys_only, boot_clock::time_point deadline, Went&);
    /// What is left of the leases; nothing where that is not known.
    awaitable<std::map<std::int64_t, std::optional<milliseconds>>> left_of(
        std::vector<KeyValue>, boot_clock::time_point deadline);
    awaitable<result<Standing>> standing(std::string_view name, boot_clock::time_point deadline,
                                         std::string& detail);
    /// Says something to holders, in their keys, or deletes these. Those that were told.
    awaitable<result<std::vector<KeyValue>>> tell(std::string_view name, HolderFilter, Says,
                                                  boot_clock::time_point deadline,
                                                  std::string& detail);
    /// What one member says of itself; "silent" where it does not.
    awaitable<spi::Facts> member_facts(spi::Endpoint, boot_clock::time_point deadline);
    void tend();
    awaitable<void> keep_waiting();

    const Capabilities capabilities_;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::shared_ptr<Leases> leases_;
    std::shared_ptr<Lines> lines_;
    std::vector<std::int64_t> asking_;  ///< leases of grants that are asked for
    bool tending_ = false;
    std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  ///< with this object
    std::shared_ptr<spi::net::Gate> tend_gate_ = std::make_shared<spi::net::Gate>();
};

}  // namespace holdfast::etcd
