// The etcd backend. Each owner has a key below that of the lock, in the order of creation, as in
// `etcdctl lock` and etcd's own lock service. One file per task: acquire and stand (in line),
// change (a key's lease or its units), leave, operate.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "entering.hpp"
#include "holdfast/spi/check.hpp"
#include "leases.hpp"
#include "members.hpp"
#include "queue_cache.hpp"

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

    awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                               boot_clock::time_point deadline) override;
    awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter&, spi::Tell,
                                             boot_clock::time_point deadline) override;
    awaitable<spi::Answer<std::string>> note(std::string_view name, std::optional<std::string> text,
                                             boot_clock::time_point deadline) override;
    awaitable<spi::Answer<std::vector<std::string>>> list(std::string_view prefix,
                                                          std::size_t limit,
                                                          boot_clock::time_point deadline) override;
    awaitable<spi::Answer<Examination>> examine(boot_clock::time_point deadline) override;
    awaitable<void> close() override;
    std::uint64_t requests() const noexcept override {
        return shared_->requests.load(std::memory_order_relaxed);
    }

private:
    using Attempts = std::vector<spi::Attempt*>;
    /// A change of a key: another lease, or fewer units.
    struct Change {
        OwnerStatePtr place;
        Lease lease;
        spi::Units units;
        bool grant = false;  ///< a waiter becomes a holder
        enum class Outcome : std::uint8_t { unknown, done, gone, revoked, other_kind } outcome{};
        PreviousHolder previous = PreviousHolder::unknown;
    };
    /// A young lease for an item of a batch, or why there is none.
    struct Leased {
        result<Lease> lease;
        std::string detail;
    };
    struct BatchItem {
        spi::Attempt* attempt;
        OwnerStatePtr place;
        Lease own;
        Entering how;
        std::unique_ptr<QueueCache::Listing> listing;
    };
    /// The keys of a line, and how many of them hold.
    struct QueueSnapshot {
        std::vector<KeyValue> all;  ///< in the order of their creation
        std::size_t holders = 0;
    };
    /// The course of a request, beside its results.
    struct RequestInfo {
        std::int64_t revision = 0;
        bool doubt = false;  ///< it may have been executed
        bool late = false;   ///< it may still be executed
        bool repeated = false;
        std::string detail;
    };

    /// One lease for each item that `needs` selects; the others get an empty one.
    template <class Item>
    awaitable<std::vector<Leased>> lease_each(std::vector<Item*>, bool (*needs)(const OwnerState&));

    /// For attempts at different locks that have no keys yet: makes the keys, granted or in line.
    awaitable<void> enter(Attempts, bool again);
    /// With the leases that there are for them; the others get their outcomes.
    std::vector<BatchItem> with_leases(const Attempts&, std::vector<Leased>&);
    /// Gives each its outcome where the request failed. Returns those that met a full database.
    static Attempts not_entered(std::vector<BatchItem>&, error_code, const std::string& detail);
    /// What to do next with an attempt, after its key was made or not.
    enum class Next : std::uint8_t { nothing, stand, leave, clear };
    Next entered(const BatchItem&, const Result&, std::int64_t revision, std::int64_t& marker);
    /// Removes markers without owners, and enters again.
    awaitable<void> clear(Attempts, std::vector<std::int64_t> markers);
    /// For attempts whose keys exist: takes what fits; the others wait.
    awaitable<void> stand(Attempts);
    awaitable<void> take(Attempts);
    /// A single attempt, which leaves nothing behind.
    awaitable<void> give_up(spi::Attempt*);
    /// Lists a line, since its watch may have missed something.
    awaitable<void> look_after(OwnerStatePtr, boot_clock::time_point deadline);
    /// Of places whose marks are different ones.
    awaitable<void> release_apart(std::vector<spi::Held*>);
    /// Takes from `all`, in their order, those that do not clash with any before them.
    template <class Item, class Clash>
    static std::vector<Item*> take_apart(std::vector<Item*>& all, Clash clash) {
        std::vector<Item*> part, rest;
        for (Item* a : all) {
            const bool clashes =
                std::any_of(part.begin(), part.end(), [&](const Item* b) { return clash(a, b); });
            (clashes ? rest : part).push_back(a);
        }
        all = std::move(rest);
        return part;
    }
    void start_over(OwnerState&);
    void add_tombstone(const OwnerState&, const Lease&, Transaction&);
    static bool is_late(const spi::Held&);
    static OwnerStatePtr state_of(const std::shared_ptr<void>& p) {
        return std::static_pointer_cast<OwnerState>(p);
    }
    static bool always(const OwnerState&) { return true; }
    static bool in_doubt(const OwnerState& p) { return p.doubt; }
    static milliseconds look_within(milliseconds ttl) noexcept {
        return std::min(milliseconds(1000), ttl / 3);
    }
    spi::Attempt::Granted granted(const spi::Attempt&, const Lease&, PreviousHolder);
    /// Attaches waiters' keys to the lease that all waiters share.
    awaitable<void> adopt(const Attempts&);
    /// Attaches keys to other leases if they exist and are not revoked. Returns the error of those
    /// whose outcome is unknown.
    awaitable<error_code> change(std::vector<Change>&, boot_clock::time_point deadline,
                                 std::string* detail);
    static Transaction changing(const Change&);
    static void changed(Change&, const Result&, std::int64_t revision);
    static void not_changed(Change&, const Result&);
    /// One request for all of these; returns a result for each.
    awaitable<result<std::vector<Result>>> transact(
        std::vector<Transaction>, boot_clock::time_point deadline, RequestInfo&,
        Members::Length length = Members::Length::brief);
    /// For each answer of the store: one that was asked for after another and has an earlier
    /// revision, or comes from a cluster made anew, is of a store that forgot what is known here.
    void compare(std::int64_t newest_before, std::int64_t revision);
    awaitable<result<Result>> ask(std::string begin, std::string end, std::int64_t limit,
                                  bool keys_only, boot_clock::time_point deadline, RequestInfo&);
    /// The time left of the leases; nullopt where it is not known.
    awaitable<std::map<std::int64_t, std::optional<milliseconds>>> left_of(
        std::vector<KeyValue>, boot_clock::time_point deadline);
    awaitable<spi::Answer<QueueSnapshot>> standing(std::string_view name,
                                                   boot_clock::time_point deadline);
    /// Writes a request to holders into their keys, or deletes the keys. Returns the holders
    /// reached.
    awaitable<spi::Answer<std::vector<KeyValue>>> reach(std::string_view name, HolderFilter,
                                                        spi::Tell, boot_clock::time_point deadline);
    /// Facts that one member reports; "silent" if it does not answer.
    awaitable<spi::Facts> member_facts(spi::Endpoint, boot_clock::time_point deadline);
    /// What the user may not do, as Rights::missing; nullopt where nobody says.
    awaitable<std::optional<std::string>> missing_rights(boot_clock::time_point deadline);
    void tend();
    awaitable<void> keep_waiting();

    const Capabilities capabilities_;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::shared_ptr<Leases> leases_;
    std::shared_ptr<QueueCache> queues_;
    std::vector<std::int64_t> asking_;  ///< leases of grants whose requests are under way
    std::int64_t newest_ = 0;           ///< revision that an answer had
    unsigned generation_ = 0;           ///< Members::generation(), as it was known last
    bool tending_ = false;
    std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  ///< this object is
    std::shared_ptr<spi::net::Gate> tend_gate_ = std::make_shared<spi::net::Gate>();
};

}  // namespace holdfast::etcd
