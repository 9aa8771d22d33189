#include "backend.hpp"

#include <algorithm>
#include <optional>

#include "../resp/errors.hpp"
#include "../resp/server_facts.hpp"
#include "lane.hpp"

namespace holdfast::redis {
namespace {

using spi::Attempt;
using spi::Held;

/// The operations of one verb, each with its keys, which stay where they are.
template <class Op>
class Batch {
public:
    Batch(Shared& shared, std::size_t size) : shared_(shared), keys_(size), operations_(size) {
        all_.reserve(size);
    }
    /// At most `size` times.
    template <class... Arguments>
    void add(std::string_view name, Arguments&&... arguments) {
        const std::size_t i = all_.size();
        keys_[i].assign(shared_.options.prefix, name, !shared_.options.plain);
        all_.push_back(
            &operations_[i].emplace(shared_, keys_[i], std::forward<Arguments>(arguments)...));
    }
    const Op& operator[](std::size_t i) const { return *operations_[i]; }
    const std::vector<Operation*>& all() const { return all_; }

private:
    Shared& shared_;
    std::vector<Keys> keys_;
    std::vector<std::optional<Op>> operations_;
    std::vector<Operation*> all_;
};

}  // namespace

std::shared_ptr<tls::Context> tls_context(const spi::Settings& s, spi::BackendEvents& events) {
    return tls::make_context(data_target(s).tls, [events = &events](std::string text) {
        events->warn(std::move(text));
    });
}

std::unique_ptr<RedisBackend> make_server(const spi::Settings& s, spi::Context c,
                                          std::shared_ptr<tls::Context> tls,
                                          std::shared_ptr<Member> member) {
    if (!Options(s).queue)
        return std::make_unique<RedisBackend>(s, c, std::move(tls), std::move(member));
    return std::make_unique<QueueBackend>(s, c, std::move(tls), std::move(member));
}

RedisBackend::RedisBackend(const spi::Settings& s, spi::Context c,
                           std::shared_ptr<tls::Context> tls, std::shared_ptr<Member> member)
    : capabilities_(promises(s)),
      context_(c),
      shared_(std::make_shared<Shared>(s)),
      tls_(std::move(tls)),
      connection_(std::make_shared<Connection>(c.engine, shared_, tls_.get(),
                                               s.duration("request_timeout"))),
      member_(std::move(member)) {
    Scripts::all();
    shared_->greeting = member_ ? &usable_in_cluster() : &usable();
    shared_->on_move = [this](const std::string& from, const std::string& to) { moved(from, to); };
    if (member_) {
        member_->leads_to(shared_->where);
        shared_->where = member_;
    }
    if (shared_->options.sentinels) {
        Sentinels::Listener listener;
        listener.moved = [this](const std::string& from, const std::string& to) {
            moved(from, to);
        };
        listener.warn = [this](std::string text) { context_.events.warn(std::move(text)); };
        sentinels_ =
            std::make_shared<Sentinels>(c.engine, s, shared_, tls_.get(), std::move(listener));
        shared_->where = sentinels_;
        for (const auto& one : sentinels_->all())
            for (std::string& text : exposures(one->target()))
                context_.events.warn(std::move(text));
    }
    // Of a cluster once, and not by each of its servers.
    if (member_) return;
    for (std::string& text : exposures(shared_->target))
        context_.events.warn(std::move(text));
}

error_code RedisBackend::check_name(std::string_view name) const noexcept {
    if (reserved(shared_->options.prefix, name)) return make(Error::reserved_name);
    return {};
}

// --- verbs
// --------------------------------------------------------------------------------------

awaitable<void> RedisBackend::attempt(std::span<Attempt* const> all) {
    Batch<Acquire> batch(*shared_, all.size());
    for (Attempt* a : all)
        batch.add(a->name, *a);
    const InFlight::Now now(*in_flight_, all);
    if (!now.allowed()) {
        for (Attempt* a : all)
            a->outcome = Attempt::Failed{make_error_code(errc::closed)};
        co_return;
    }
    auto task = drive(batch.all());
    co_await std::move(task);
}

awaitable<void> RedisBackend::withdraw(std::span<Attempt* const> all) {
    Batch<Leave> batch(*shared_, all.size());
    const auto now = boot_clock::now();
    for (const Attempt* a : all)
        batch.add(a->name, *a, now);
    auto task = drive(batch.all());
    co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i]->withdrawal = batch[i].error();
}

awaitable<void> RedisBackend::renew(std::span<Held* const> all) {
    Batch<Renew> batch(*shared_, all.size());
    for (Held* h : all)
        batch.add(h->name, *h);
    auto task = drive(batch.all());
    co_await std::move(task);
}

awaitable<void> RedisBackend::release(std::span<Held* const> all) {
    Batch<Leave> batch(*shared_, all.size());
    const auto now = boot_clock::now();
    for (Held* h : all) {
        h->released = ReleaseResult::unreachable;
        batch.add(h->name, *h, now);
    }
    auto task = drive(batch.all());
    co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i)
        batch[i].tell(*all[i]);
}

std::unique_ptr<spi::Lane> RedisBackend::open_lane() {
    if (shared_->options.replicas > 0) return nullptr;  // which a lane does not ask
    return std::make_unique<Lane>(shared_, in_flight_, tls_);
}

// --- requests
// -----------------------------------------------------------------------------------

awaitable<void> RedisBackend::drive(Operations open) {
    const ScriptCall* const first = open.empty() ? nullptr : open.front()->wants();
    std::uint64_t link = 0;
    while (!open.empty()) {
        const ScriptCall* const verb = open.front()->wants();
        const auto end = std::stable_partition(
            open.begin(), open.end(), [verb](const Operation* o) { return o->wants() == verb; });
        if (member_)
            std::stable_sort(open.begin(), end, [](const Operation* a, const Operation* b) {
                return a->slot() < b->slot();
            });
        const std::span<Operation* const> part(open.begin(), end);
        // A second step counts for the connection of the first one only.
        auto task = exchange(part, verb == first ? 0 : link);
        Answer answer = co_await std::move(task);
        if (answer.failed) answer.failed = shared_->where->judged(std::move(answer.failed));
        link = answer.link;
        Operations granted;
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (answer.failed) {
                part[i]->missing(answer.failed, answer.sent);
                continue;
            }
            const ReplyText words = text_of(answer.replies[i], *verb);
            if (words.error) notice(words.text, part[i]);
            part[i]->answered(answer.replies[i], &boot_clock::now);
            if (part[i]->granted()) granted.push_back(part[i]);
        }
        if (shared_->options.replicas > 0 && !granted.empty()) {
            auto sure = confirm(granted, link);
            co_await std::move(sure);
        }
        if (shared_->options.confirm && !granted.empty()) {
            auto counting = count(granted, answer.move);
            co_await std::move(counting);
        }
        std::erase_if(open, [](const Operation* o) { return o->wants() == nullptr; });
    }
}

awaitable<RedisBackend::Answer> RedisBackend::exchange(std::span<Operation* const> all,
                                                       std::uint64_t link) {
    auto deadline = all.front()->deadline;
    for (const Operation* o : all)
        deadline = std::max(deadline, o->deadline);
    Answer answer;
    // First of all: what is asked has the server's time in it, which is known once it is connected.
    if (!connection_->is_ready()) answer.failed = co_await connection_->ready(deadline);
    if (answer.failed) co_return answer;
    auto requests = requests_of(all, true);
    auto task = run(requests, deadline, link);
    answer = co_await std::move(task);
    if (answer.failed) co_return answer;
    std::vector<Operation*> refused;
    answer.replies = parts_of(requests, std::move(answer.replies), refused);
    if (refused.empty()) co_return answer;
    // The server refuses all because of one. Others have their answers from this connection.
    requests = requests_of(refused, false);
    auto again = run(requests, deadline, answer.link);
    Answer rest = co_await std::move(again);
    rest.sent = true;
    if (rest.failed) co_return rest;
    std::vector<Operation*> none;
    auto replies = parts_of(requests, std::move(rest.replies), none);
    rest.replies = std::move(answer.replies);
    for (std::size_t i = 0, next = 0; next < refused.size(); ++i)
        if (all[i] == refused[next]) rest.replies[i] = std::move(replies[next++]);
    co_return rest;
}

std::vector<RedisBackend::Request> RedisBackend::requests_of(std::span<Operation* const> all,
                                                             bool share) const {
    const ScriptCall& verb = *all.front()->wants();
    share = share && verb.many != nullptr;
    std::vector<Request> requests;
    for (std::size_t at = 0; at < all.size();) {
        std::size_t n = 1;
        const auto fits = [&](const Operation* o) {
            return o->slot() == all[at]->slot() && !o->asking();
        };
        while (share && fits(all[at]) && at + n < all.size() && fits(all[at + n]))
            ++n;
        if (all[at]->asking()) requests.emplace_back().command.add("ASKING");
        Request& r = requests.emplace_back();
        r.of = all.subspan(at, n);
        r.script = n > 1 ? verb.many : verb.one;
        write(r.command, r.of, channel());
        at += n;
    }
    return requests;
}

std::vector<Reply> RedisBackend::parts_of(std::span<const Request> requests,
                                          std::vector<Reply> whole,
                                          std::vector<Operation*>& refused) const {
    std::vector<Reply> parts;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const std::size_t n = requests[i].of.size();
        Reply& reply = whole[i];
        if (n == 1) {
            parts.push_back(std::move(reply));
        } else if (n > 1 && reply.is(Reply::Type::array) && reply.count == n) {
            std::move(reply.elements.begin(), reply.elements.begin() + static_cast<long>(n),
                      std::back_inserter(parts));
        } else if (n > 1) {
            const error_code why =
                reply.is(Reply::Type::error) ? from_reply(reply.text) : error_code();
            const bool redirected = member_ && why == make(Error::cluster);
            if (of_one_key(why) && !redirected)
                refused.insert(refused.end(), requests[i].of.begin(), requests[i].of.end());
            parts.insert(parts.end(), n, reply);
        }
    }
    return parts;
}

awaitable<RedisBackend::Answer> RedisBackend::run(std::span<Request> calls,
                                                  boot_clock::time_point deadline,
                                                  std::uint64_t link) {
    std::string bytes;
    for (const Request& r : calls)
        r.command.encode(bytes);
    Answer all = co_await connection_->exchange(std::move(bytes), calls.size(), deadline, link);
    std::vector<std::size_t> again;
    for (std::size_t i = 0; !all.failed && i < calls.size(); ++i) {
        if (calls[i].script == nullptr || !forgotten(all.replies[i])) continue;
        const bool asking = i > 0 && calls[i].of.size() == 1 && calls[i].of.front()->asking();
        if (asking) again.push_back(i - 1);
        again.push_back(i);
    }
    if (!again.empty()) {
        bytes.clear();
        for (const std::size_t i : again) {
            if (calls[i].script != nullptr) with_text(calls[i].command, *calls[i].script);
            calls[i].command.encode(bytes);
        }
        // What was answered already counts for one connection only.
        Answer rest =
            co_await connection_->exchange(std::move(bytes), again.size(), deadline, all.link);
        all.failed = std::move(rest.failed);
        all.sent = rest.sent || again.size() < calls.size();
        for (std::size_t i = 0; !all.failed && i < again.size(); ++i)
            all.replies[again[i]] = std::move(rest.replies[i]);
    }
    if (all.failed && all.failed.detail.empty())
        all.failed.detail = shared_->target.display + ": " + all.failed.why.message();
    co_return all;
}

void RedisBackend::notice(const error_code& why) {
    if (why == make(Error::read_only) && connection_->retire()) demoted();
}

void RedisBackend::notice(std::string_view reply, Operation* to) {
    const error_code why = from_reply(reply);
    if (!member_) return notice(why);
    if (why == make(Error::uncovered)) member_->uncovered();
    const auto redirect = redirect_of(reply);
    if (!redirect) return;
    if (!redirect->once)
        member_->moved(*redirect);
    else if (to != nullptr)
        to->ask_at(member_->whole(redirect->to));
}

awaitable<RedisBackend::Answer> RedisBackend::send(std::span<Request> calls,
                                                   boot_clock::time_point deadline) {
    Answer answer;
    if (!connection_->is_ready()) answer.failed = co_await connection_->ready(deadline);
    if (!answer.failed) {
        auto task = run(calls, deadline);
        answer = co_await std::move(task);
    }
    if (answer.failed && member_) answer.failed = member_->judged(std::move(answer.failed));
    co_return answer;
}

awaitable<spi::Answer<std::vector<Reply>>> RedisBackend::ask(std::vector<Command> all,
                                                             boot_clock::time_point deadline) {
    std::vector<Request> calls(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        calls[i].command = std::move(all[i]);
    auto task = send(calls, deadline);
    Answer answer = co_await std::move(task);
    if (answer.failed) co_return std::move(answer.failed);
    co_return std::move(answer.replies);
}

awaitable<spi::Answer<Reply>> RedisBackend::ask(const Command& c, const Script* script,
                                                boot_clock::time_point deadline) {
    Request one{c, script, {}};
    auto task = send({&one, 1}, deadline);
    Answer answer = co_await std::move(task);
    if (answer.failed) co_return std::move(answer.failed);
    Reply& r = answer.replies.front();
    if (r.is(Reply::Type::error)) {
        notice(r.text, nullptr);
        co_return spi::Failure(from_reply(r.text), script == nullptr ? std::string(shown(r.text))
                                                                     : shown(r.text, *script));
    }
    co_return std::move(r);
}

awaitable<spi::Failure> RedisBackend::still_usable(boot_clock::time_point deadline) {
    Command c;
    c.add("HELLO");
    const auto reply = co_await ask(c, nullptr, deadline);
    if (!reply) co_return reply.error().why == errc::unavailable ? reply.error() : spi::Failure();
    auto failed = shared_->greeting->answered(0, *reply);
    notice(failed.why);
    co_return failed;
}

awaitable<void> RedisBackend::take_back(std::vector<InFlight::Open> open) {
    if (open.empty()) co_return;
    const auto deadline = boot_clock::now() + closing_time;
    const auto unreachable = co_await connection_->ready(deadline);
    if (unreachable) co_return;
    // Behind the requests themselves, or with a mark for one that comes by a lane's connection.
    // Their answers may not come, so the script is sent whole: nobody could repeat it.
    std::string bytes;
    for (const InFlight::Open& o : open) {
        Keys keys;
        keys.assign(shared_->options.prefix, o.name, !shared_->options.plain);
        Leave leave(*shared_, keys, o.owner, deadline,
                    shared_->clock.latest_server_ms(o.deadline) + 1);
        Operation* const one = &leave;
        Command c;
        write(c, {&one, 1}, {});
        if (bytes.empty()) with_text(c, *leave.wants()->one);
        c.encode(bytes);
    }
    co_await connection_->exchange(std::move(bytes), open.size(), deadline);
}

awaitable<void> RedisBackend::close() {
    try {
        auto task = take_back(in_flight_->stop());
        co_await std::move(task);
    } catch (const std::exception&) {
        // The ttl ends it.
    }
    connection_->close();
    if (sentinels_) sentinels_->close();
}

}  // namespace holdfast::redis
