// The Lock that Client::lock makes: a name at a backend.
#pragma once
#include "engine.hpp"
#include "holdfast/lock.hpp"
#include "lock_info.hpp"

namespace holdfast {

class BackendLock final : public Lock {
public:
    BackendLock(std::shared_ptr<Handle> handle, std::shared_ptr<const LockInfo> info)
        : handle_(std::move(handle)), info_(std::move(info)) {}

    std::string_view name() const noexcept override { return info_->name; }
    const Capabilities& capabilities() const noexcept override {
        return handle_->engine->backend().capabilities();
    }

protected:
    result<Lease> do_acquire(const AcquireOptions&, std::stop_token) override;
    void do_async_acquire(const AcquireOptions&, Handler) override;

private:
    error_code refuse() const noexcept;
    result<Lease> wait_on_engine(std::string owner, const AcquireOptions&, const std::stop_token&,
                                 boot_clock::time_point started, spi::Attempt* left);

    std::shared_ptr<Handle> handle_;
    std::shared_ptr<const LockInfo> info_;
};

}  // namespace holdfast
