// What the opaque handles of holdfast.h are.
#pragma once
#include <memory>
#include <variant>
#include <vector>

#include "../include/holdfast.h"
#include "holdfast/acquire_all.hpp"
#include "holdfast/client.hpp"
#include "holdfast/detail/fork_generation.hpp"
#include "holdfast/election.hpp"

namespace holdfast::c {

/// Knows in which process it was made: an asynchronous call of a forked child would never be
/// answered.
class Handle {
public:
    bool forked() const noexcept { return born_ != fork_generation(); }

private:
    const std::uint64_t born_ = fork_generation();
};

class Queue;

/// For hf_string_free.
char* copied(const std::string&);

}  // namespace holdfast::c

struct hf_client : holdfast::c::Handle {
    explicit hf_client(holdfast::Client c) : client(std::move(c)) {}
    const holdfast::Client client;
};

struct hf_lock : holdfast::c::Handle {
    using Candidate = std::shared_ptr<holdfast::Election>;
    using What =
        std::variant<std::shared_ptr<holdfast::Lock>, Candidate, std::vector<holdfast::Part>>;
    explicit hf_lock(What w) : what(std::move(w)) {}
    const What what;
};

struct hf_lease : holdfast::c::Handle {
    using Held = std::variant<holdfast::Lease, holdfast::LeaseSet>;
    explicit hf_lease(Held h) : held(std::move(h)) {}
    /// Releases in the background, as abandoned.
    ~hf_lease();
    hf_lease(const hf_lease&) = delete;
    hf_lease& operator=(const hf_lease&) = delete;
    Held held;
};

struct hf_queue {
    std::shared_ptr<holdfast::c::Queue> queue;
};
