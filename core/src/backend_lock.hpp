// The Lock that Client::make_lock makes: a name at a backend.
#pragma once
#include <atomic>
#include <string>

#include "engine.hpp"
#include "holdfast/lock.hpp"

namespace holdfast {

/// What is fixed for one Lock, shared with its acquisitions and leases.
struct LockInfo {
    std::string name;
    milliseconds ttl{}, request_timeout{}, max_hold{forever};
    Kind kind = Kind::mutex;
    std::uint32_t limit = 1;
    milliseconds lock_delay{0}, min_hold{0};
    bool renew = true;
    /// The last attempt found the lock busy, so a blocking caller queues at once.
    mutable std::atomic<bool> busy{false};

    /// How long a server may keep a grant of this lock: some grant more than the ttl.
    milliseconds longest() const noexcept { return milliseconds(longest_.load()); }
    void granted(milliseconds length) const noexcept {
        if (length + lock_delay > longest()) longest_ = (length + lock_delay).count();
    }
    void set_ttl(milliseconds length) noexcept { ttl = length, granted(length); }
    /// Fills in what all attempts of this lock have in common.
    void describe(spi::Attempt& a) const noexcept {
        a.name = name, a.ttl = ttl, a.kind = kind;
        a.lock_delay = lock_delay, a.min_hold = min_hold;
    }

private:
    mutable std::atomic<milliseconds::rep> longest_{0};
};

/// now + wait, without overflow.
inline boot_clock::time_point after(boot_clock::time_point now, milliseconds wait) noexcept {
    const auto room = boot_clock::time_point::max() - now;
    return wait >= std::chrono::floor<milliseconds>(room) ? boot_clock::time_point::max()
                                                          : now + wait;
}

class BackendLock final : public Lock {
public:
    BackendLock(std::shared_ptr<Client::Impl> client, std::shared_ptr<const LockInfo> info)
        : client_(std::move(client)), info_(std::move(info)) {}

    std::string_view name() const noexcept override { return info_->name; }
    const Capabilities& capabilities() const noexcept override {
        return client_->engine->backend().capabilities();
    }
    Kind kind() const noexcept override { return info_->kind; }
    std::string place() const override;
    std::unique_ptr<Lock> clone() const override;

protected:
    result<Lease> do_acquire(const AcquireOptions&, std::stop_token) const override;
    void do_async_acquire(const AcquireOptions&, Handler) const override;

private:
    error_code refuse() const noexcept;
    /// The units that the acquisition takes; an error when this lock cannot give them.
    result<spi::Units> units_of(const AcquireOptions&) const;
    result<Lease> wait_on_engine(std::string owner, const AcquireOptions&, const spi::Units&,
                                 const std::stop_token&, boot_clock::time_point started,
                                 Lanes::Loan = {}, spi::Attempt* left = nullptr) const;

    std::shared_ptr<Client::Impl> client_;
    std::shared_ptr<const LockInfo> info_;
};

}  // namespace holdfast
