// A LeaseSet proves that several locks are held together. It is lost with the first part that is.
#pragma once
#include <compare>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/lease.hpp"

namespace holdfast {

/// The result of acquire_all(): a movable value whose destructor releases all parts, in reverse
/// order of acquisition. As with a Lease, one thread may use it while others read it.
class [[nodiscard, gnu::visibility("default")]] LeaseSet {
public:
    LeaseSet() noexcept;
    LeaseSet(LeaseSet &&) noexcept;
    /// Releases what is held so far, as the destructor does.
    LeaseSet& operator=(LeaseSet&&) noexcept;
    LeaseSet(const LeaseSet&) = delete;
    LeaseSet& operator=(const LeaseSet&) = delete;
    ~LeaseSet();

    /// How many parts were passed to acquire_all().
    std::size_t size() const noexcept;
    bool empty() const noexcept {
        return size() == 0;
    }
    /// The lease of this part, counted from 0 in the caller's order. Parts that name one lock share
    /// one lease. `part` must be below size(), which at() checks.
    const Lease& operator[](std::size_t part) const noexcept;
    /// The same. Throws std::out_of_range.
    const Lease& at(std::size_t part) const;
    /// Visits the lease of each part in the caller's order. Valid while the set is neither moved
    /// nor destroyed.
    class const_iterator;
    using value_type = Lease;
    using iterator = const_iterator;
    const_iterator begin() const noexcept;
    const_iterator end() const noexcept;

    /// Whether all parts are held and valid now; false for an empty set.
    [[nodiscard]] bool valid() const noexcept;
    /// The worst state of a part: lost, released, at_risk, held; empty for an empty set.
    LeaseState state() const noexcept;
    /// Until when no other client can hold any part: the earliest valid_until() of all.
    boot_clock::time_point valid_until() const noexcept;
    /// How long until then; zero when a part is not held.
    std::chrono::nanoseconds time_left() const noexcept;
    /// Requested once, when the first part is lost; never by release(), and never for an empty set.
    /// Callbacks run as those of Lease::lost().
    std::stop_token lost() const;
    /// Why the first lost part was lost; no error while none is.
    error_code lost_reason() const noexcept;

    /// Releases all parts in reverse order and returns the worst answer (owned_by_other,
    /// already_expired, unreachable, released). Blocks for at most the request time-out for each
    /// lock. Idempotent.
    ReleaseResult release(Outcome = Outcome::done) noexcept;

    /// As release(), without blocking; ends at the request time-out. Not cancellable. The error
    /// code is `unavailable` when the release of a part gets no answer. The set may be moved or
    /// destroyed before completion; a lazy operation that begins after its end finds nothing held.
    template <asio::completion_token_for<Lease::ReleaseSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_release(Outcome outcome = Outcome::done, Token && token = Token()) {
        return asio::async_initiate<Token, Lease::ReleaseSignature>(
            [state = state_, outcome](auto h) { start_release(state, outcome, std::move(h)); },
            token);
    }
    template <asio::completion_token_for<Lease::ReleaseSignature> Token>
    [[nodiscard]] auto async_release(Token && token) {
        return async_release(Outcome::done, std::forward<Token>(token));
    }
    /// Completes with the reason when the first part is lost, with not_held when the set is
    /// released, and with cancelled when cancelled. Lifetime as async_release().
    template <asio::completion_token_for<Lease::RenewSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_lost(Token && token = Token()) const {
        return asio::async_initiate<Token, Lease::RenewSignature>(
            [state = state_](auto h) { start_lost(state, std::move(h)); }, token);
    }

private:
    friend class Gathering;
    struct State;
    /// For so many parts, with the index of each one's lease in the order of add().
    explicit LeaseSet(std::vector<std::size_t> of_part);
    /// Adds a lease after the others, and watches it for loss.
    void add(Lease);
    static void start_release(const std::shared_ptr<State>&, Outcome,
                              asio::any_completion_handler<Lease::ReleaseSignature>);
    static void start_lost(const std::shared_ptr<State>&,
                           asio::any_completion_handler<Lease::RenewSignature>);
    void drop() noexcept;
    std::span<const Lease> leases() const noexcept;

    std::shared_ptr<State> state_;  // null: an empty set
};

/// Of the random access kind.
class LeaseSet::const_iterator {
public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Lease;
    using difference_type = std::ptrdiff_t;
    using pointer = const Lease*;
    using reference = const Lease&;

    const_iterator() noexcept = default;
    reference operator*() const noexcept { return (*set_)[part_]; }
    pointer operator->() const noexcept { return &**this; }
    reference operator[](difference_type n) const noexcept { return *(*this + n); }
    const_iterator& operator+=(difference_type n) noexcept {
        part_ = static_cast<std::size_t>(static_cast<difference_type>(part_) + n);
        return *this;
    }
    const_iterator& operator-=(difference_type n) noexcept { return *this += -n; }
    const_iterator& operator++() noexcept { return *this += 1; }
    const_iterator& operator--() noexcept { return *this -= 1; }
    const_iterator operator++(int) noexcept {
        const auto before = *this;
        ++*this;
        return before;
    }
    const_iterator operator--(int) noexcept {
        const auto before = *this;
        --*this;
        return before;
    }
    friend const_iterator operator+(const_iterator i, difference_type n) noexcept { return i += n; }
    friend const_iterator operator+(difference_type n, const_iterator i) noexcept { return i += n; }
    friend const_iterator operator-(const_iterator i, difference_type n) noexcept { return i -= n; }
    friend difference_type operator-(const const_iterator& a, const const_iterator& b) noexcept {
        return static_cast<difference_type>(a.part_) - static_cast<difference_type>(b.part_);
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) noexcept {
        return a.part_ == b.part_;
    }
    friend auto operator<=>(const const_iterator& a, const const_iterator& b) noexcept {
        return a.part_ <=> b.part_;
    }

private:
    friend class LeaseSet;
    const_iterator(const LeaseSet& set, std::size_t part) noexcept : set_(&set), part_(part) {}
    const LeaseSet* set_ = nullptr;
    std::size_t part_ = 0;
};

inline LeaseSet::const_iterator LeaseSet::begin() const noexcept {
    return {*this, 0};
}
inline LeaseSet::const_iterator LeaseSet::end() const noexcept {
    return {*this, size()};
}

}  // namespace holdfast
