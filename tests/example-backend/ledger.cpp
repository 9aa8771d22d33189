// The backend of the example: the rules of NameState, run on a store that compares and commits. A
// backend for a real store of that kind differs in the store alone.
#include <atomic>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>

#include "holdfast/spi/identity.hpp"
#include "holdfast/spi/register_backend.hpp"
#include "state_text.hpp"
#include "store.hpp"

namespace ledger {
namespace {

using namespace holdfast;
using spi::NameState;

Capabilities promises() {
    using enum Capability;
    return {SafetyClass::d,
            {fencing, cross_process, renewal, previous_holder, inspect, list, break_lock,
             survives_client_clock_jump, shared, semaphore, downgrade, lock_delay, min_hold,
             release_request}};
}

// All processes of a machine have this clock.
NameState::Time now_us() {
    return std::chrono::floor<std::chrono::microseconds>(boot_clock::now().time_since_epoch())
        .count();
}

/// The names that one transaction reads, and what it writes of them.
class Names {
public:
    Names(Snapshot read, std::string prefix)
        : read_(std::move(read)), prefix_(std::move(prefix)), now_(now_us()) {}

    /// Null: there is something else under the name.
    NameState* find(std::string_view name) {
        const std::string key = std::string(lock_key) + prefix_ + std::string(name);
        const auto [at, fresh] = states_.try_emplace(key);
        if (!fresh) return at->second ? &*at->second : nullptr;
        const auto kept = read_.find(key);
        const bool empty = kept == read_.end() || kept->second.text.empty();
        at->second = empty ? NameState() : state_from(kept->second.text);
        if (!at->second) return nullptr;
        at->second->least_token = now_;  // tokens go on where somebody has removed the key
        at->second->expire(now_);
        return &*at->second;
    }
    std::vector<std::string> held(std::string_view prefix, std::size_t limit) {
        std::vector<std::string> out;
        const std::string from = std::string(lock_key) + prefix_ + std::string(prefix);
        for (auto at = read_.lower_bound(from);
             at != read_.end() && at->first.starts_with(from) && out.size() < limit; ++at) {
            std::string name = at->first.substr(lock_key.size() + prefix_.size());
            const NameState* state = find(name);
            if (state != nullptr && !state->holders.empty()) out.push_back(std::move(name));
        }
        return out;
    }
    /// What is kept beside the name, after `text` has taken its place.
    std::string note(std::string_view name, const std::optional<std::string>& text) {
        const std::string key = std::string(note_key) + prefix_ + std::string(name);
        if (text) {
            write(key, *text);
            return *text;
        }
        const auto kept = read_.find(key);
        return kept == read_.end() ? std::string() : kept->second.text;
    }
    /// All that it changes.
    std::vector<Write> writes() {
        for (const auto& [key, state] : states_)
            if (state && state->changed) write(key, to_text(*state));
        return std::move(writes_);
    }

private:
    // One name has two keys, so that nobody who looks for one finds the other.
    static constexpr std::string_view lock_key = "lock ", note_key = "note ";

    void write(const std::string& key, std::string text) {
        const auto kept = read_.find(key);
        writes_.push_back({key, std::move(text), kept == read_.end() ? 0 : kept->second.version});
    }

    const Snapshot read_;
    const std::string prefix_;
    const NameState::Time now_;
    std::map<std::string, std::optional<NameState>> states_;
    std::vector<Write> writes_;
};

// What each verb does of one item. A transaction may run it several times, and the last one counts.

// Nothing was written now; but a repeated attempt may have a grant or a place already.
void unwritten(spi::Attempt& a, error_code why) {
    if (a.repeated)
        a.outcome = spi::Attempt::NoAnswer{why};
    else
        a.outcome = spi::Attempt::Failed{why, true};
}

void attempt_one(spi::Attempt& a, NameState* state) {
    if (boot_clock::now() > a.deadline) return unwritten(a, make_error_code(errc::unavailable));
    using enum NameState::Attempted::Kind;
    NameState::Attempted made{of_another_kind};
    if (state != nullptr) {
        auto request = NameState::Request::of(a);
        // A waiter's ticket is from its first attempt.
        if (a.queue && !a.place) a.place = std::make_shared<NameState::Time>(state->now);
        if (a.place) request.ticket = *static_cast<const NameState::Time*>(a.place.get());
        made = state->attempt(request);
    }
    switch (made.kind) {
        case granted:
            a.outcome = spi::Attempt::Granted{
                {static_cast<std::uint64_t>(made.token)}, made.previous, a.ttl, {}};
            break;
        case busy:
            a.outcome = spi::Attempt::Busy{NameState::poll_within(state->next_end()), true};
            break;
        case of_another_kind:
            a.detail = state == nullptr ? "it is no lock" : NameState::other_kind;
            a.outcome = spi::Attempt::Failed{make_error_code(errc::kind_mismatch)};
            break;
    }
}

void withdraw_one(spi::Attempt& a, NameState* state) {
    if (state != nullptr) state->withdraw(a.owner);
    a.withdrawal = {};
}

void renew_one(spi::Held& h, NameState* state) {
    NameState::Renewed made{make_error_code(errc::lost)};
    if (state != nullptr) made = state->renew(NameState::Request::of(h));
    h.renewal = made.why ? spi::Held::Renewal::lost : spi::Held::Renewal::renewed;
    h.renewal_error = made.why;
    h.asked = made.asked;
}

void release_one(spi::Held& h, NameState* state) {
    NameState::Released made;
    if (state != nullptr) made = state->release(NameState::Request::of(h));
    h.released = made.result;
}

class Ledger final : public spi::Backend {
public:
    Ledger(const spi::Settings& s, spi::Context c)
        : store_(s.path), prefix_(s.text("namespace")), engine_(c.engine) {}

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 256; }

    spi::awaitable<void> attempt(std::span<spi::Attempt* const> items) override {
        co_await each(items, attempt_one, unwritten);
    }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const> items) override {
        const auto failed = [](spi::Attempt& a, error_code why) { a.withdrawal = why; };
        co_await each(items, withdraw_one, failed);
    }
    spi::awaitable<void> renew(std::span<spi::Held* const> items) override {
        const auto failed = [](spi::Held& h, error_code why) {
            h.renewal = spi::Held::Renewal::unknown;
            h.renewal_error = why;
        };
        co_await each(items, renew_one, failed);
    }
    spi::awaitable<void> release(std::span<spi::Held* const> items) override {
        const auto failed = [](spi::Held& h, error_code why) {
            h.released = ReleaseResult::unreachable;
            h.release_error = why;
        };
        co_await each(items, release_one, failed);
    }

    spi::awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                                    boot_clock::time_point deadline) override {
        spi::Answer<spi::Survey> out = spi::Failure(errc::kind_mismatch);
        const std::function<void(Names&)> turn = [&](Names& names) {
            if (const NameState* state = names.find(name)) out = state->survey();
        };
        auto failed = co_await transact(deadline, turn, false);
        if (failed) co_return failed;
        co_return out;
    }
    spi::awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter& which,
                                                  spi::Tell what,
                                                  boot_clock::time_point deadline) override {
        spi::Answer<spi::Survey> out = spi::Failure(errc::not_held);
        const std::function<void(Names&)> turn = [&](Names& names) {
            NameState* state = names.find(name);
            out = state != nullptr ? state->tell(which, what) : spi::Failure(errc::not_held);
        };
        auto failed = co_await transact(deadline, turn);
        if (failed) co_return failed;
        co_return out;
    }
    spi::awaitable<spi::Answer<std::string>> note(std::string_view name,
                                                  std::optional<std::string> text,
                                                  boot_clock::time_point deadline) override {
        std::string out;
        const std::function<void(Names&)> turn = [&](Names& names) {
            out = names.note(name, text);
        };
        auto failed = co_await transact(deadline, turn);
        if (failed) co_return failed;
        co_return out;
    }
    spi::awaitable<spi::Answer<std::vector<std::string>>> list(
        std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) override {
        std::vector<std::string> out;
        const std::function<void(Names&)> turn = [&](Names& names) {
            out = names.held(prefix, limit);
        };
        auto failed = co_await transact(deadline, turn, false);
        if (failed) co_return failed;
        co_return out;
    }

    spi::awaitable<void> close() override {
        closed_ = true;
        co_return;
    }
    std::uint64_t requests() const noexcept override { return requests_; }

private:
    template <class Item, class One, class Failed>
    spi::awaitable<void> each(std::span<Item* const> items, One one, Failed failed) {
        auto deadline = items.front()->deadline;
        for (const Item* item : items)
            deadline = std::max(deadline, item->deadline);
        const std::function<void(Names&)> turn = [&](Names& names) {
            for (Item* item : items)
                one(*item, names.find(item->name));
        };
        const spi::Failure why = co_await transact(deadline, turn);
        if (!why) co_return;
        for (Item* item : items) {
            failed(*item, why.why);
            item->detail = why.detail;
        }
    }

    /// Runs `turn` on what the store has, again while another transaction comes between. With an
    /// error, nothing is written.
    spi::awaitable<spi::Failure> transact(boot_clock::time_point deadline,
                                          const std::function<void(Names&)>& turn,
                                          bool writes = true) {
        asio::steady_timer pause(engine_);
        std::string detail = "another process is writing";
        while (!closed_) {
            ++requests_;
            Commit made = Commit::done;
            try {
                Names names(store_.read(), prefix_);
                turn(names);
                if (const auto changes = names.writes(); writes && !changes.empty())
                    made = store_.commit(changes);
                if (made == Commit::refused) detail = "the file cannot be written";
            } catch (const std::exception& e) {
                detail = e.what();
                made = Commit::refused;
            }
            if (made == Commit::done) co_return spi::Failure();
            if (made == Commit::refused || boot_clock::now() >= deadline) break;
            pause.expires_after(milliseconds(made == Commit::busy ? 1 : 0));
            error_code ignored;
            co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
        co_return spi::Failure(closed_ ? errc::closed : errc::unavailable, std::move(detail));
    }

    const Capabilities capabilities_ = promises();
    Store store_;
    const std::string prefix_;
    const asio::any_io_executor engine_;
    bool closed_ = false;
    std::atomic<std::uint64_t> requests_{0};
};

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "ledger";
    d.schemes = {"ledger"};
    d.summary = "a made-up transactional store in one file, an example of a backend";
    d.example = "ledger:///run/locks.ledger";
    d.hosts = spi::Descriptor::Hosts::none;
    d.path = spi::Descriptor::Path::required;
    d.path_meaning = "the file, in a folder that is emptied when the machine starts";
    d.path_is_file = true;
    d.identity = [](const spi::Settings& s) {
        return spi::IdentityText().part("file", spi::canonical_path(s.path)).text();
    };
    d.capabilities = [](const spi::Settings&) { return promises(); };
    d.make = spi::make_backend<Ledger>;
    return d;
}

}  // namespace
}  // namespace ledger

HOLDFAST_REGISTER_BACKEND(ledger, ledger::describe())
