// A lock that its owner may acquire again while it holds it. The program chooses the owners: the
// number of a request, for example, or a thread.
#pragma once
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "holdfast/detail/fork_guarded.hpp"
#include "holdfast/lock.hpp"

namespace holdfast {

class Client;

/// Behind Reentrant: the handles of one owner, and its acquisitions under way. Thread-safe.
class HOLDFAST_EXPORT ReentrantOwner {
public:
    using Handler = asio::any_completion_handler<Lock::Signature>;
    static std::shared_ptr<ReentrantOwner> make(std::shared_ptr<Lock>);
    /// Throws boost::system::system_error (not_supported) for a semaphore.
    static std::shared_ptr<Lock> checked(std::unique_ptr<Lock>);
    static std::unique_ptr<Lock> make_lock(const Client&, std::string_view, const LockOptions&);

    virtual ~ReentrantOwner();
    virtual result<Lease> acquire(const AcquireOptions&, std::stop_token) = 0;
    /// Writes to `diagnostics` only while the handler is alive.
    virtual void start(const AcquireOptions&, Handler) = 0;

protected:
    ReentrantOwner();
};

/// Gives each owner a lock that it may acquire again. Thread-safe.
///
/// The first acquire of an owner asks the server. Until all its Leases are released, further ones
/// get one more handle of the same grant at once (Lease::share). That includes shared inside
/// exclusive, which stays exclusive until the last handle is released. Concurrent first acquires of
/// one owner share one acquisition if they wait at least as long as it does. A loss is that of all
/// handles. In the child of a fork() nothing can be acquired through it.
template <class Owner, class Compare = std::less<Owner>>
class Reentrant {
public:
    /// Throws boost::system::system_error (not_supported) for a semaphore.
    template <std::derived_from<Lock> L>
    explicit Reentrant(std::unique_ptr<L> lock)
        : all_(std::make_shared<All>(
              ReentrantOwner::checked(std::unique_ptr<Lock>(std::move(lock))))) {}
    /// Throws boost::system::system_error when the lock could not be made.
    template <std::derived_from<Lock> L>
    explicit Reentrant(result<std::unique_ptr<L>> lock)
        : Reentrant(std::unique_ptr<Lock>(std::move(lock).value())) {}

    /// As of Client::make_lock. Throws boost::system::system_error with its errors.
    Reentrant(const Client& client, std::string_view name, const LockOptions& options = {})
        : Reentrant(ReentrantOwner::make_lock(client, name, options)) {}

    const Lock& lock() const noexcept { return *all_->lock; }

    /// Blocks, is cancelled and fails as Lock::acquire. Further errors: would_deadlock (exclusive,
    /// while the owner holds it shared), lost (while a handle of a lost grant is not released).
    [[nodiscard]] result<Lease> acquire(const Owner& owner, const AcquireOptions& options = {},
                                        std::stop_token stop = {}) const {
        const auto one = all_->of(owner);
        if (!one) return make_error_code(errc::forked);
        return one->acquire(options, std::move(stop));
    }
    /// Makes one attempt: acquire with `wait` zero.
    [[nodiscard]] result<Lease> try_acquire(const Owner& owner) const {
        return acquire(owner, {.wait = milliseconds::zero()});
    }
    /// Waits at most so long: acquire with this `wait`.
    template <class R, class P>
    [[nodiscard]] result<Lease> try_acquire_for(const Owner& owner,
                                                std::chrono::duration<R, P> wait) const {
        return acquire(owner, {.wait = whole_milliseconds(wait)});
    }
    /// Acquires in shared mode; otherwise as acquire.
    [[nodiscard]] result<Lease> acquire_shared(const Owner& owner, AcquireOptions options = {},
                                               std::stop_token stop = {}) const {
        options.mode = Mode::shared;
        return acquire(owner, options, std::move(stop));
    }
    /// As acquire, without blocking. Completion: on the handler's executor, else on a thread of
    /// Holdfast's, never inside this call. Cancellation and lifetime as Lock::async_acquire.
    template <asio::completion_token_for<Lock::Signature> Token = asio::deferred_t>
    [[nodiscard]] auto async_acquire(Owner owner, const AcquireOptions& options = {},
                                     Token&& token = Token()) const {
        return asio::async_initiate<Token, Lock::Signature>(
            [all = all_](auto h, const Owner& o, const detail::Kept<AcquireOptions>& asked) {
                if (const auto one = all->of(o)) one->start(asked.get(), std::move(h));
            },
            token, std::move(owner), detail::Kept(options));
    }
    template <asio::completion_token_for<Lock::Signature> Token>
    [[nodiscard]] auto async_acquire(Owner owner, Token&& token) const {
        return async_acquire(std::move(owner), AcquireOptions(), std::forward<Token>(token));
    }
    /// Acquires in shared mode; otherwise as async_acquire.
    template <asio::completion_token_for<Lock::Signature> Token = asio::deferred_t>
    [[nodiscard]] auto async_acquire_shared(Owner owner, AcquireOptions options = {},
                                            Token&& token = Token()) const {
        options.mode = Mode::shared;
        return async_acquire(std::move(owner), options, std::forward<Token>(token));
    }
    template <asio::completion_token_for<Lock::Signature> Token>
    [[nodiscard]] auto async_acquire_shared(Owner owner, Token&& token) const {
        return async_acquire_shared(std::move(owner), AcquireOptions(), std::forward<Token>(token));
    }

    /// How many owners it keeps: all that hold or wait, and some of the others. Zero in the child
    /// of a fork().
    std::size_t owners() const {
        const auto known = all_->known.access();
        return known ? known->owners.size() : 0;
    }

private:
    /// Shared with operations that have not begun.
    struct All {
        explicit All(std::shared_ptr<Lock> l) : lock(std::move(l)) {}
        /// Null in a forked child.
        std::shared_ptr<ReentrantOwner> of(const Owner& owner) {
            const auto mine = known.access();
            if (!mine) return nullptr;
            auto& one = mine->owners[owner];
            if (one) return one;
            const auto made = one = ReentrantOwner::make(lock);
            if (mine->owners.size() >= mine->sweep_at) {
                // A higher use count means that the owner holds or waits.
                std::erase_if(mine->owners,
                              [](const auto& o) { return o.second.use_count() == 1; });
                mine->sweep_at = 2 * mine->owners.size() + 16;
            }
            return made;
        }
        struct Known {
            std::map<Owner, std::shared_ptr<ReentrantOwner>, Compare> owners;
            std::size_t sweep_at = 16;
        };
        const std::shared_ptr<Lock> lock;
        ForkGuarded<Known> known;
    };
    std::shared_ptr<All> all_;
};

}  // namespace holdfast
