#include "backend.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <list>
#include <set>

#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::etcd {
namespace {

template <class All, class Is>
void remove_if(All& all, Is is) {
    all.erase(std::remove_if(all.begin(), all.end(), is), all.end());
}

}  // namespace

using spi::Attempt;
using spi::Held;
using Step = Operation::Step;

EtcdBackend::EtcdBackend(const spi::Settings& s, spi::Context c)
    : capabilities_(promises(s)),
      shared_(std::make_shared<Shared>(s, c)),
      members_(std::make_shared<Members>(shared_)),
      leases_(std::make_shared<Leases>(shared_, members_)),
      queues_(std::make_shared<QueueCache>(shared_, members_)) {
    const Options& o = shared_->options;
    const bool local = std::all_of(o.hosts.begin(), o.hosts.end(), [](const spi::Endpoint& h) {
        return spi::on_this_machine(h.host);
    });
    for (std::string& text :
         tls::exposures(o.tls, !o.password.empty(), local, o.display, "etcds://"))
        c.events.warn(std::move(text));
}

EtcdBackend::~EtcdBackend() {
    *gone_ = true;
}

awaitable<void> EtcdBackend::close() {
    queues_->stop();
    const auto deadline = boot_clock::now() + closing_time;
    // Grants that are asked for may still come: with their leases they end, as waiters with theirs.
    std::set<std::int64_t> leases(asking_.begin(), asking_.end());
    if (!leases_->waiting().over(boot_clock::now())) leases.insert(leases_->waiting().id);
    leases_->leave_waiting();
    for (const std::int64_t id : leases) {
        auto ending = leases_->end(id, deadline);
        co_await std::move(ending);
    }
    members_->close();
    *gone_ = true;
    tend_gate_->open();
}

// --- verbs

template <class Op, class Item, class... More>
awaitable<void> EtcdBackend::run(std::span<Item* const> items, More&... more) {
    std::list<Op> all;
    Operations open;
    for (Item* item : items)
        open.push_back(&all.emplace_back(*item, more...));
    auto task = drive(std::move(open));
    co_await std::move(task);
}

awaitable<void> EtcdBackend::attempt(std::span<Attempt* const> items) {
    for (Attempt* a : items)
        if (!a->place) a->place = make_owner_state(shared_->options, *a);
    return run<Acquire>(items, *queues_);
}
awaitable<void> EtcdBackend::withdraw(std::span<Attempt* const> items) {
    return run<Leave>(items, *queues_);
}
awaitable<void> EtcdBackend::renew(std::span<Held* const> items) {
    return run<Renew>(items);
}
awaitable<void> EtcdBackend::release(std::span<Held* const> items) {
    return run<Leave>(items, *queues_);
}

// --- operations

awaitable<void> EtcdBackend::drive(Operations open) {
    const auto over = [](const Operation* o) { return o->wants() == Step::over; };
    const auto begun = boot_clock::now();
    for (remove_if(open, over); !open.empty(); remove_if(open, over)) {
        // Those that wait are attached to their lease together, when all have come so far.
        const auto urgent = [](const Operation* o) { return o->wants() != Step::adopt; };
        const auto first = std::find_if(open.begin(), open.end(), urgent);
        if (first != open.end()) std::iter_swap(open.begin(), first);
        const Step step = open.front()->wants();
        if (step == Step::enter && is_late(*open.front(), begun)) continue;
        Operations part = together(open);
        if (!have_leases(part)) {
            auto leasing = get_leases(part);
            co_await std::move(leasing);
        }
        remove_if(part, [step](const Operation* o) { return o->wants() != step; });
        if (part.empty()) continue;
        auto sending = exchange(part);
        co_await std::move(sending);
    }
}

bool EtcdBackend::is_late(Operation& o, boot_clock::time_point begun) {
    const auto now = boot_clock::now();
    if (o.place->perhaps || now - begun < o.deadline - now) return false;
    RequestInfo went;
    went.unsent = true;
    went.detail = "too many requests of this client are under way";
    o.missing(make(Error::no_answer), went);
    return true;
}

EtcdBackend::Operations EtcdBackend::together(const Operations& open) {
    const Operation& first = *open.front();
    if (first.wants() == Step::list) return {open.front()};
    Operations part;
    for (Operation* o : open) {
        // Two keys of one transaction would be created at once, and two of its writes may not meet.
        const bool clashes = std::any_of(part.begin(), part.end(), [o](const Operation* other) {
            return (o->alone() || other->alone()) && o->place->line == other->place->line;
        });
        if (o->wants() == first.wants() && !clashes) part.push_back(o);
    }
    return part;
}

bool EtcdBackend::have_leases(const Operations& part) {
    bool all = true;
    for (Operation* o : part) {
        const bool young = o->needs() == Operation::Needs::young;
        if (const Lease* l = young ? leases_->young_at_hand(o->ttl) : nullptr) o->leased(*l);
        all = all && o->needs() == Operation::Needs::nothing;
    }
    return all;
}

awaitable<void> EtcdBackend::get_leases(const Operations& part) {
    spi::Failure no_waiting;  // that lease is asked for once
    for (Operation* o : part) {
        if (o->needs() == Operation::Needs::nothing) continue;
        spi::Answer<Lease> lease = no_waiting;
        if (o->needs() == Operation::Needs::young) {
            auto task = leases_->young(o->ttl, o->deadline);
            lease = co_await std::move(task);
        } else if (!no_waiting) {
            tend();
            auto task = leases_->for_waiting(o->deadline);
            lease = co_await std::move(task);
            if (!lease) no_waiting = lease.error();
        }
        if (lease) {
            o->leased(*lease);
            continue;
        }
        RequestInfo went;
        went.detail = lease.error().text();
        o->missing(lease.error().why, went);
    }
}

awaitable<void> EtcdBackend::exchange(const Operations& all) {
    const Operation& first = *all.front();
    const bool enters = first.wants() == Step::enter;
    auto deadline = first.deadline;
    for (const Operation* o : all) {
        deadline = std::max(deadline, o->deadline);
        if (enters) asking_.push_back(o->lease().id);
    }
    RequestInfo went;
    result<Result> answer = Result();
    if (first.wants() == Step::list) {
        const std::string& line = first.place->line;
        auto asking = ask(line, after(line), 0, false, deadline, went);
        answer = co_await std::move(asking);
    } else {
        auto messages = take_messages();
        const auto length = write(all, messages->request);
        const std::int64_t newest = newest_;
        auto task =
            members_->post(method::txn, messages->request, messages->answer, deadline, length);
        const Members::Answer sent = co_await std::move(task);
        answer = read(messages->answer, sent, all.size(), newest, went);
        give_back(std::move(messages));
    }
    went.ended = boot_clock::now();
    if (!answer && went.detail.empty()) went.detail = answer.error().message();
    const bool alone = all.size() == 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto at = std::find(asking_.begin(), asking_.end(), all[i]->lease().id);
        if (enters && at != asking_.end()) asking_.erase(at);
        if (answer)
            all[i]->answered(alone ? *answer : answer->results[i], went);
        else
            all[i]->missing(answer.error(), went);
    }
}

Members::Length EtcdBackend::write(const Operations& all, rpc::TxnRequest& to) {
    boost::container::small_vector<Transaction, 4> requests;
    boost::container::small_vector<const OwnerState*, 4> places;
    auto length = Members::Length::brief;
    Transaction whole(to);
    for (Operation* o : all) {
        requests.push_back(all.size() == 1 ? whole : whole.then().transaction());
        o->request(requests.back());
        places.push_back(o->place.get());
        if (o->lists()) length = Members::Length::list;
    }
    if (all.front()->wants() == Step::leave) add_leaving(places, requests);
    return length;
}

// --- requests

std::unique_ptr<EtcdBackend::Messages> EtcdBackend::take_messages() {
    if (spare_.empty()) return std::make_unique<Messages>();
    auto one = std::move(spare_.back());
    spare_.pop_back();
    return one;
}

void EtcdBackend::give_back(std::unique_ptr<Messages> m) {
    constexpr std::size_t most = 4, longest = 64U << 10U;
    if (spare_.size() == most || m->request.ByteSizeLong() > longest ||
        m->answer.ByteSizeLong() > longest)
        return;
    m->request.Clear();
    m->answer.Clear();
    spare_.push_back(std::move(m));
}

result<Result> EtcdBackend::read(const rpc::TxnResponse& from, const Members::Answer& sent,
                                 std::size_t parts, std::int64_t newest, RequestInfo& went) {
    went.doubt = sent.doubt;
    went.late = sent.doubt && sent.why != make(Error::no_space);
    went.repeated = sent.repeated;
    went.unsent = sent.unsent;
    went.detail = sent.detail;
    if (sent.why == make(Error::no_lease)) leases_->forget();
    if (sent.why) return sent.why;
    went.revision = from.header().revision();
    compare(newest, went.revision);
    Result whole = read_transaction(from);
    if (went.revision <= 0 || (parts != 1 && whole.results.size() != parts)) {
        went.doubt = went.late = true;
        return make(Error::protocol);
    }
    return whole;
}

awaitable<result<Result>> EtcdBackend::transact(Messages& messages, boot_clock::time_point deadline,
                                                RequestInfo& went, Members::Length length) {
    const std::int64_t newest = newest_;
    auto task = members_->post(method::txn, messages.request, messages.answer, deadline, length);
    const Members::Answer sent = co_await std::move(task);
    co_return read(messages.answer, sent, 1, newest, went);
}

awaitable<result<Result>> EtcdBackend::ask(std::string begin, std::string end, std::int64_t limit,
                                           bool keys_only, boot_clock::time_point deadline,
                                           RequestInfo& went) {
    const std::int64_t newest = newest_;
    rpc::RangeRequest request;
    request.set_key(std::move(begin));
    request.set_range_end(std::move(end));
    request.set_limit(limit);
    request.set_keys_only(keys_only);
    rpc::RangeResponse reply;
    auto task = members_->post(method::range, request, reply, deadline, Members::Length::list);
    const Members::Answer answer = co_await std::move(task);
    went.detail = answer.detail;
    if (answer) co_return answer.why;
    went.revision = reply.header().revision();
    if (went.revision <= 0) co_return make(Error::protocol);
    compare(newest, went.revision);
    co_return read_range(reply);
}

void EtcdBackend::compare(std::int64_t newest_before, std::int64_t revision) {
    if (revision >= newest_before && generation_ == members_->generation()) {
        newest_ = std::max(newest_, revision);
        return;
    }
    generation_ = members_->generation();
    newest_ = revision;
    leases_->forget();
    queues_->begin_anew(revision);
}

void EtcdBackend::watch(std::string_view name, bool on) {
    if (on) tend();
    queues_->observe(line_of(shared_->options, name), on ? name : std::string_view());
}

// --- waiters' lease

void EtcdBackend::tend() {
    if (tending_) return;
    auto task = keep_waiting();
    asio::co_spawn(shared_->engine, std::move(task),
                   [this, gone = gone_](const std::exception_ptr&) {
                       if (!*gone) tending_ = false;
                   });
    tending_ = true;
}

awaitable<void> EtcdBackend::keep_waiting() {
    const auto gone = gone_;
    const auto gate = tend_gate_;
    const auto shared = shared_;
    const auto leases = leases_;
    const auto queues = queues_;
    while (!*gone) {
        auto wait = gate->wait(shared->engine, boot_clock::now() + shared->options.ttl / 3);
        co_await std::move(wait);
        if (*gone) co_return;
        // A key that nobody deletes must not be kept alive: it would stand in line for ever.
        if (queues->drop_abandoned()) leases->leave_waiting();
        queues->tidy();
        const std::int64_t id = leases->waiting().id;
        if (!queues->has_waiters() || id == 0) continue;
        auto task = leases->keep_waiting(boot_clock::now() + shared->options.request_timeout);
        if (co_await std::move(task)) continue;
        if (*gone) co_return;
        for (const OwnerStatePtr& p : queues->waiting()) {
            if (p->lease != id) continue;
            p->state = OwnerState::State::gone;
            shared->events->wake(p->owner);
        }
    }
}

}  // namespace holdfast::etcd
