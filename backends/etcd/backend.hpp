// The etcd backend: a key for each owner, below that of the lock, in the order of creation, as
// `etcdctl lock` and etcd's own lock service have it. Operators' calls are in operate.cpp.
#pragma once

// A false alarm of g++ 12 about coroutine frames, whose memory Boost allocates in its own way; in
// all files that include this one.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
    awaitable<result<Capabilities>> probe(boot_clock::time_point deadline,
                                          std::string& detail) override;
    awaitable<void> close() override;
    std::uint64_t requests() const noexcept override {
        return shared_->requests.load(std::memory_order_relaxed);
    }

private:
    using Attempts = std::vector<spi::Attempt*>;
    /// Another lease for a key.
    struct Change {
        PlacePtr place;
        Lease lease;
        enum class Outcome : std::uint8_t { unknown, done, gone, revoked } outcome{};
    };
    /// How a request went, beside its results.
    struct Went {
        std::int64_t revision = 0;
        bool doubt = false, repeated = false;
        std::string detail;
    };

    /// Of different locks, without keys yet: makes them, free or in line.
    awaitable<void> enter(Attempts);
    bool entered(spi::Attempt&, const PlacePtr&, const Lease& own, const Result&,
                 std::int64_t revision, Lines::Listing*);
    /// Whose keys are there: what is first is taken, the others wait.
    awaitable<void> stand(Attempts);
    awaitable<void> take(Attempts);
    /// Sees to a line of which the watch may have missed something.
    awaitable<void> look_after(PlacePtr, boot_clock::time_point deadline);
    void start_over(Place&);
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
    /// What is left of a lease; nothing where that is not known.
    awaitable<std::optional<milliseconds>> left_of(std::int64_t lease,
                                                   boot_clock::time_point deadline);
    awaitable<result<std::vector<KeyValue>>> standing(std::string_view name,
                                                      boot_clock::time_point deadline,
                                                      std::string& detail);
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
