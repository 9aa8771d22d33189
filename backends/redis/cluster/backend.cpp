#include "backend.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "../../resp/errors.hpp"
#include "checks.hpp"
#include "lane.hpp"

namespace holdfast::redis {
namespace {

using spi::Attempt;
using spi::Held;

// A request is sent from server to server so often at most: where they do not agree, it waits.
constexpr unsigned most_redirections = 5;
// Between two requests for a slot that is being moved. A slot of few keys takes milliseconds.
constexpr milliseconds shortest_pause{2}, longest_pause{50};

awaitable<void> sleep_for(asio::any_io_executor executor, boot_clock::duration time) {
    asio::steady_timer timer(executor, time);
    error_code ignored;
    auto token = asio::redirect_error(asio::use_awaitable, ignored);
    co_await timer.async_wait(token);
}

/// Runs all of them at once.
awaitable<void> together(asio::any_io_executor executor, std::vector<awaitable<void>> all) {
    struct Left {
        std::size_t n;
        std::exception_ptr failed;
        spi::net::Gate gate;
    };
    const auto left = std::make_shared<Left>();
    left->n = all.size() - 1;
    for (std::size_t i = 1; i < all.size(); ++i)
        asio::co_spawn(executor, std::move(all[i]), [left](const std::exception_ptr& failed) {
            if (failed) left->failed = failed;
            if (--left->n == 0) left->gate.open();
        });
    auto first = std::move(all.front());
    // The others go on with what their caller has.
    try {
        co_await std::move(first);
    } catch (const std::exception&) {
        left->failed = std::current_exception();
    }
    while (left->n > 0) {
        auto wait = left->gate.wait(executor, boot_clock::time_point::max());
        co_await std::move(wait);
    }
    if (left->failed) std::rethrow_exception(left->failed);
}

bool sent_elsewhere(const error_code& ec) {
    return ec == make(Error::cluster);
}

bool is_moving(const error_code& ec) {
    return ec == make(Error::moving) || ec == make(Error::cut_short);
}

/// How often, and after which pause, something goes again. Only in the first half of its time: a
/// last request that the deadline overtakes would hide that the servers do answer.
class Again {
public:
    explicit Again(boot_clock::time_point deadline)
        : until_(boot_clock::now() + (deadline - boot_clock::now()) / 2) {}
    /// None: no more. `moving`: the slot is on its way; else another server has it.
    std::optional<milliseconds> after(bool moving) {
        if (!moving) {
            if (++redirections_ > most_redirections) return std::nullopt;
            return milliseconds(0);
        }
        redirections_ = 0;
        const auto pause = std::exchange(pause_, std::min(2 * pause_, longest_pause));
        if (boot_clock::now() + pause >= until_) return std::nullopt;
        return pause;
    }

private:
    const boot_clock::time_point until_;
    unsigned redirections_ = 0;
    milliseconds pause_ = shortest_pause;
};

error_code attempt_error(const Attempt& a) {
    const auto* const failed = std::get_if<Attempt::Failed>(&a.outcome);
    return failed == nullptr ? error_code() : failed->why;
}

void fail_attempt(Attempt& a, const spi::Failure& f) {
    a.outcome = Attempt::Failed{f.why, for_now(f.why) || waits_out(f.why)};
    a.detail = f.detail;
}

error_code withdrawal_error(const Attempt& a) {
    return a.withdrawal;
}

void fail_withdrawal(Attempt& a, const spi::Failure& f) {
    a.withdrawal = f.why;
}

error_code renewal_error(const Held& h) {
    return h.renewal == Held::Renewal::unknown ? h.renewal_error : error_code();
}

void fail_renewal(Held& h, const spi::Failure& f) {
    h.renewal = Held::Renewal::unknown;
    h.renewal_error = f.why;
    h.detail = f.detail;
}

error_code release_error(const Held& h) {
    return h.released == ReleaseResult::unreachable ? h.release_error : error_code();
}

void fail_release(Held& h, const spi::Failure& f) {
    h.released = ReleaseResult::unreachable;
    h.release_error = f.why;
    h.detail = f.detail;
}

}  // namespace

ClusterBackend::ClusterBackend(const spi::Settings& s, spi::Context c)
    : settings_(s), options_(s), capabilities_(promises(s)), context_(c) {
    members_ = std::make_shared<Members>(
        c.engine, s,
        // Of one context for all of them: which files cannot be used is said at once, and once.
        [c, tls = tls_context(s, c.events)](const spi::Settings& of,
                                            std::shared_ptr<Member> member) {
            return make_server(of, c, tls, std::move(member));
        },
        [events = &c.events](const std::string& from, const std::string& to) {
            events->moved(from, to);
        });
    // All servers get the same password: one of them is enough to say so.
    std::vector<std::string> exposed;
    for (auto one = s.hosts.begin(); one != s.hosts.end() && exposed.empty(); ++one) {
        spi::Settings alone = s;
        alone.hosts = {*one};
        exposed = exposures(data_target(alone));
    }
    for (std::string& text : exposed)
        c.events.warn(std::move(text));
}

error_code ClusterBackend::check_name(std::string_view name) const noexcept {
    if (reserved(options_.prefix, name)) return make(Error::reserved_name);
    if (in_two_slots(options_.prefix, name)) return make(Error::two_slots);
    return {};
}

const void* ClusterBackend::server_of(std::string_view name) const noexcept {
    try {
        return members_->of(slot_for(name));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

Slot ClusterBackend::slot_for(std::string_view name) const {
    return slot_of(std::string(options_.prefix).append(name));
}

// --- verbs
// --------------------------------------------------------------------------------------

template <class Item>
std::vector<ClusterBackend::Part<Item>> ClusterBackend::parts_of(const std::vector<Item*>& open,
                                                                 const Verb<Item>& verb) {
    std::vector<Part<Item>> parts;
    for (Item* item : open) {
        const auto& elsewhere = state_of(item->place).ask_at;
        Node* const to = elsewhere ? &members_->at(*elsewhere) : members_->of(slot_for(item->name));
        if (to == nullptr) {
            members_->look();
            verb.fail(*item, make(Error::uncovered));
            continue;
        }
        auto part = std::find_if(parts.begin(), parts.end(),
                                 [to](const Part<Item>& p) { return p.to == to; });
        if (part == parts.end()) part = parts.insert(parts.end(), Part<Item>{to, {}});
        part->items.push_back(item);
    }
    return parts;
}

template <class Item>
awaitable<void> ClusterBackend::drive(std::span<Item* const> all, Verb<Item> verb) {
    auto deadline = all.front()->deadline;
    for (const Item* item : all)
        deadline = std::max(deadline, item->deadline);
    auto knowing = members_->ready(deadline);
    const spi::Failure unknown = co_await std::move(knowing);
    if (unknown) {
        for (Item* item : all)
            verb.fail(*item, unknown);
        co_return;
    }
    std::vector<Item*> open(all.begin(), all.end());
    Again again(deadline);
    for (;;) {
        const auto parts = parts_of(open, verb);
        std::vector<awaitable<void>> calls;
        for (const Part<Item>& part : parts) {
            spi::Backend& backend = *part.to->backend;
            calls.push_back((backend.*verb.run)(part.items));
        }
        if (calls.empty()) co_return;
        auto task = calls.size() == 1 ? std::move(calls.front())
                                      : together(context_.engine, std::move(calls));
        co_await std::move(task);
        open.clear();
        bool moving = false;
        for (const Part<Item>& part : parts)
            for (Item* item : part.items) {
                const error_code ec = verb.error(*item);
                if (sent_elsewhere(ec) || is_moving(ec)) open.push_back(item);
                // Where it was sent may be gone for good.
                if (!sent_elsewhere(ec)) state_of(item->place).ask_at.reset();
                moving = moving || is_moving(ec);
            }
        if (open.empty()) co_return;
        const auto pause = again.after(moving);
        if (!pause) break;
        auto sleeping = sleep_for(context_.engine, *pause);
        if (moving) co_await std::move(sleeping);
    }
    for (Item* item : open) {
        state_of(item->place).ask_at.reset();
        if (sent_elsewhere(verb.error(*item))) verb.fail(*item, make(Error::moving));
    }
}

awaitable<void> ClusterBackend::attempt(std::span<Attempt* const> all) {
    return drive<Attempt>(all, {&spi::Backend::attempt, &attempt_error, &fail_attempt});
}

awaitable<void> ClusterBackend::withdraw(std::span<Attempt* const> all) {
    return drive<Attempt>(all, {&spi::Backend::withdraw, &withdrawal_error, &fail_withdrawal});
}

awaitable<void> ClusterBackend::renew(std::span<Held* const> all) {
    return drive<Held>(all, {&spi::Backend::renew, &renewal_error, &fail_renewal});
}

awaitable<void> ClusterBackend::release(std::span<Held* const> all) {
    return drive<Held>(all, {&spi::Backend::release, &release_error, &fail_release});
}

// --- operators
// ------------------------------------------------------------------------------------

template <class T>
awaitable<spi::Answer<T>> ClusterBackend::at_slot_of(std::string_view name,
                                                     boot_clock::time_point deadline,
                                                     Call<T> call) {
    auto knowing = members_->ready(deadline);
    const spi::Failure unknown = co_await std::move(knowing);
    if (unknown) co_return unknown;
    const Slot slot = slot_for(name);
    Again again(deadline);
    for (;;) {
        Node* const node = members_->of(slot);
        if (node == nullptr) co_return spi::Failure(make(Error::uncovered));
        auto asking = call(*node->backend);
        auto answer = co_await std::move(asking);
        if (answer) co_return answer;
        const error_code why = answer.error().why;
        // Where one request may go elsewhere the slot is on its way.
        if (!sent_elsewhere(why) && !is_moving(why)) co_return answer;
        const bool moving = is_moving(why) || members_->of(slot) == node;
        const auto pause = again.after(moving);
        if (!pause) co_return spi::Failure(make(Error::moving));
        auto sleeping = sleep_for(context_.engine, *pause);
        if (moving) co_await std::move(sleeping);
    }
}

awaitable<spi::Answer<spi::Survey>> ClusterBackend::survey(std::string_view name,
                                                           boot_clock::time_point deadline) {
    return at_slot_of<spi::Survey>(name, deadline,
                                   [=](RedisBackend& at) { return at.survey(name, deadline); });
}

awaitable<spi::Answer<spi::Survey>> ClusterBackend::tell(std::string_view name,
                                                         const HolderFilter& which, spi::Tell tell,
                                                         boot_clock::time_point deadline) {
    return at_slot_of<spi::Survey>(name, deadline, [=, filter = &which](RedisBackend& at) {
        return at.tell(name, *filter, tell, deadline);
    });
}

awaitable<spi::Answer<std::string>> ClusterBackend::note(std::string_view name,
                                                         std::optional<std::string> text,
                                                         boot_clock::time_point deadline) {
    return at_slot_of<std::string>(name, deadline, [=, text = std::move(text)](RedisBackend& at) {
        return at.note(name, text, deadline);
    });
}

awaitable<spi::Answer<std::vector<Node*>>> ClusterBackend::primaries(
    boot_clock::time_point deadline) {
    auto knowing = members_->ready(deadline);
    const spi::Failure unknown = co_await std::move(knowing);
    if (unknown) co_return unknown;
    std::vector<Node*> found;
    for (const auto& node : members_->all())
        if (node->primary) found.push_back(node.get());
    co_return found;
}

awaitable<spi::Answer<std::vector<std::string>>> ClusterBackend::list(
    std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) {
    auto finding = primaries(deadline);
    const auto all = co_await std::move(finding);
    if (!all) co_return all.error();
    std::vector<std::string> names;
    for (Node* node : *all) {
        auto asking = node->backend->list(prefix, limit, deadline);
        const auto some = co_await std::move(asking);
        if (!some) co_return some.error();
        names.insert(names.end(), some->begin(), some->end());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() > limit) names.resize(limit);
    co_return names;
}

awaitable<spi::Answer<Examination>> ClusterBackend::examine(boot_clock::time_point deadline) {
    auto finding = primaries(deadline);
    const auto all = co_await std::move(finding);
    if (!all) co_return all.error();
    Examination found;
    found.capabilities = capabilities_;
    auto looking = examine_cluster(*all, *members_, settings_, deadline, found.findings);
    spi::Failure unreachable = co_await std::move(looking);
    if (unreachable) co_return unreachable;
    co_return found;
}

std::unique_ptr<spi::Lane> ClusterBackend::open_lane() {
    if (options_.replicas > 0) return nullptr;  // which a lane does not ask
    return std::make_unique<ClusterLane>(members_, options_.prefix);
}

awaitable<void> ClusterBackend::close() {
    members_->close();
    std::vector<awaitable<void>> calls;
    for (const auto& node : members_->all())
        calls.push_back(node->backend->close());
    if (calls.empty()) co_return;
    auto task = together(context_.engine, std::move(calls));
    co_await std::move(task);
}

std::uint64_t ClusterBackend::requests() const noexcept {
    return members_->requests();
}

}  // namespace holdfast::redis
