#include "holdfast/lock.hpp"

#include "call.hpp"
#include "failure.hpp"
#include "handles.hpp"
#include "sized.hpp"

namespace holdfast::c {
namespace {

milliseconds duration(std::int64_t ms) {
    if (ms < 0) throw BadStruct("a time is negative");
    return ms == HF_FOREVER ? forever : milliseconds(ms);
}

LockOptions lock_options(const hf_lock_options& o) {
    LockOptions options;
    options.kind = o.kind == HF_SHARED_MUTEX ? Kind::shared_mutex
                   : o.kind == HF_SEMAPHORE  ? Kind::semaphore
                                             : Kind::mutex;
    options.limit = o.limit;
    options.renew = o.no_renewal == 0;
    if (o.ttl != 0) options.ttl = duration(o.ttl);
    if (o.max_hold != 0) options.max_hold = duration(o.max_hold);
    options.lock_delay = duration(o.lock_delay);
    options.min_hold = duration(o.min_hold);
    return options;
}

AcquireOptions acquire_options(const hf_acquire_options& o, Diagnostics& words) {
    AcquireOptions options;
    options.wait = duration(o.wait);
    if (o.note != nullptr) options.note = o.note;
    options.diagnostics = &words;
    options.mode = o.shared != 0 ? Mode::shared : Mode::exclusive;
    options.permits = o.permits;
    return options;
}

AcquireAllOptions all_options(const AcquireOptions& o) {
    AcquireAllOptions options;
    options.wait = o.wait;
    options.note = o.note;
    options.diagnostics = o.diagnostics;
    return options;
}

/// Blocks.
struct Acquire {
    const AcquireOptions& options;
    result<hf_lease::Held> operator()(const std::shared_ptr<Lock>& lock) const {
        return held(lock->acquire(options));
    }
    result<hf_lease::Held> operator()(const hf_lock::Candidate& candidate) const {
        return held(candidate->campaign(options.note, options));
    }
    result<hf_lease::Held> operator()(const std::vector<Part>& parts) const {
        return held(acquire_all(parts, all_options(options)));
    }
    static result<hf_lease::Held> held(auto got) {
        if (!got) return got.error();
        return hf_lease::Held(std::move(*got));
    }
};

/// Does not block.
template <class Handler>
struct Start {
    const AcquireOptions& options;
    Handler& handler;
    void operator()(const std::shared_ptr<Lock>& lock) const {
        lock->async_acquire(options, std::move(handler));
    }
    void operator()(const hf_lock::Candidate& candidate) const {
        candidate->async_campaign(std::string(options.note), options, std::move(handler));
    }
    void operator()(const std::vector<Part>& parts) const {
        async_acquire_all(parts, all_options(options), std::move(handler));
    }
};

hf_part part_at(const hf_part* parts, std::size_t size, std::size_t n) {
    const auto* at = reinterpret_cast<const char*>(parts) + n * size;
    return taken<hf_part>(reinterpret_cast<const hf_part*>(at), HF_PART);
}

}  // namespace
}  // namespace holdfast::c

using namespace holdfast;

int hf_lock_new(hf_client* client, const char* name, const hf_lock_options* given, hf_lock** lock,
                hf_error* error) {
    return c::guarded(error, [&] {
        const auto o = c::taken<hf_lock_options>(given, HF_LOCK_OPTIONS);
        const LockOptions options = c::lock_options(o);
        Diagnostics words;
        if (o.kind < HF_MUTEX || o.kind > HF_ELECTION)
            return c::Failure(errc::bad_config, "there is no such kind of lock");
        const auto made = [&](auto got, auto as) {
            if (!got) return c::Failure(got.error(), words);
            *lock = new hf_lock(as(std::move(*got)));
            return c::Failure();
        };
        const std::string_view text = name != nullptr ? name : "";
        if (o.kind != HF_ELECTION)
            return made(client->client.make_lock(text, options, &words),
                        [](auto l) { return std::shared_ptr<Lock>(std::move(l)); });
        return made(client->client.make_election(text, options, &words),
                    [](auto e) { return std::make_shared<Election>(std::move(e)); });
    });
}

int hf_lock_all(const hf_part* parts, size_t count, hf_lock** lock, hf_error* error) {
    return c::guarded(error, [&] {
        std::vector<Part> all;
        for (std::size_t n = 0; n < count; ++n) {
            const hf_part p = c::part_at(parts, parts->size, n);
            const auto* one =
                p.lock != nullptr ? std::get_if<std::shared_ptr<Lock>>(&p.lock->what) : nullptr;
            if (one == nullptr)
                return c::Failure(errc::bad_config,
                                  "a part is no lock of its own: an election, several, or none");
            all.emplace_back(**one, p.shared != 0 ? Mode::shared : Mode::exclusive, p.permits);
        }
        *lock = new hf_lock(std::move(all));
        return c::Failure();
    });
}

void hf_lock_free(hf_lock* lock) {
    delete lock;
}

int hf_acquire(const hf_lock* lock, const hf_acquire_options* given, hf_lease** lease,
               hf_error* error) {
    return c::guarded(error, [&] {
        Diagnostics words;
        const auto options =
            c::acquire_options(c::taken<hf_acquire_options>(given, HF_ACQUIRE_OPTIONS), words);
        auto got = std::visit(c::Acquire{options}, lock->what);
        if (!got) return c::Failure(got.error(), words);
        *lease = new hf_lease(std::move(*got));
        return c::Failure();
    });
}

int hf_acquire_start(const hf_lock* lock, const hf_acquire_options* given, hf_queue* queue,
                     uint64_t* call, hf_error* error) {
    return c::guarded(error, [&] {
        const auto o = c::taken<hf_acquire_options>(given, HF_ACQUIRE_OPTIONS);
        if (lock->forked() || queue->queue->forked())
            return c::Failure(make_error_code(errc::forked));
        c::Call::start(queue->queue, *call, [&](auto handler, Diagnostics& words) {
            const auto options = c::acquire_options(o, words);
            std::visit(c::Start<decltype(handler)>{options, handler}, lock->what);
        });
        return c::Failure();
    });
}
