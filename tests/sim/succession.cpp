#include "succession.hpp"

#include <algorithm>
#include <utility>

#include "history.hpp"

namespace holdfast::sim {
namespace {

using enum PreviousHolder;

PreviousHolder after(Outcome o) {
    return o == Outcome::done ? released : abandoned;
}

}  // namespace

bool Succession::quiet_since(Nanos moment) const {
    const Nanos troubled = world_.troubled_until_;
    return troubled == 0 || troubled + world_.deployment_->recovery() < moment;
}

bool Succession::heard_since(const Process& client, Nanos moment) const {
    return !client.far && quiet_since(moment);
}

Succession::Writer* Succession::find(const std::string& owner) {
    for (auto& [name, all] : writers_)
        for (auto& [token, w] : all)
            if (w.owner == owner) return &w;
    return nullptr;
}

std::string Succession::granted(const Belief& b, Nanos asked) {
    const Lease& lease = *b.lease;
    if (lease.mode() == Mode::shared) read_[b.name] = world_.kernel.now();
    if (world_.options.unsafe || world_.deployment_->may_forget()) return {};
    const Ends may = allowed(b, asked);
    const PreviousHolder told = lease.previous_holder();
    if (lease.mode() == Mode::exclusive && lease.fencing_token().value != 0)
        writers_[b.name][lease.fencing_token().value] = {b.owner, world_.kernel.now()};
    if (may.contains(told)) return {};
    std::string words;
    for (const PreviousHolder one : may)
        words += (words.empty() ? "" : " or ") + std::string(to_string(one));
    return "previous_holder() is wrong: " + std::string(to_string(told)) + ", not " + words;
}

Succession::Ends Succession::allowed(const Belief& b, Nanos asked) const {
    const Name& n = world_.names[b.name];
    const Deployment::Memory memory = world_.deployment_->memory();
    if (!memory.any || n.options.kind == Kind::semaphore) return {unknown};
    const Writer* before = nullptr;
    if (const auto all = writers_.find(b.name); all != writers_.end())
        for (const auto& [token, w] : all->second)
            if (token < b.lease->fencing_token().value) before = &w;
    Ends may = before != nullptr ? ends_of(*before) : Ends{none};
    const Nanos since = before != nullptr ? before->learnt : 0;
    // One that was heard of after its end is given back as abandoned.
    if (may_have_had_another(b, Mode::exclusive, since)) may.insert({crashed, abandoned});
    if (may_have_had_it(b, asked)) may.insert(crashed);
    may.merge(ends_of_sets(b, since));
    if (may.contains(crashed) && !memory.claims) may.insert(unknown);
    if (may.contains(released) && !memory.releases) may.insert(none);
    if (may.contains(none) && memory.readers) may.insert(released);
    return may;
}

Succession::Ends Succession::ends_of(const Writer& w) const {
    Ends may;
    // It counts as released from then on, whatever became of the reader.
    if (w.less != Writer::Less::no) may.insert(released);
    if (w.less == Writer::Less::yes) return may;
    if (!w.outcome) {
        may.insert(crashed);
        // It is given back when its time is over, and the server may still have kept it.
        may.insert(abandoned);
        return may;
    }
    if (w.lost) {
        may.insert({crashed, abandoned});
        return may;
    }
    may.insert(after(*w.outcome));
    if (w.broken) may.insert(crashed);
    if (w.answer == ReleaseResult::released) return may;
    if (w.late || !quiet_since(w.left)) may.insert(crashed);
    return may;
}

bool Succession::may_have_had_another(const Belief& b, Mode mode, Nanos since) const {
    if (world_.history_->may_be_broken(b.name, since)) return true;
    for (const Failure& f : failures_)
        if (f.name == b.name && f.mode == mode && !f.quiet && f.ended + latest > since) return true;
    for (const World::Waiting& w : world_.waiting_)
        if (w.name == b.name && w.mode == mode && !heard_since(w.user->process, w.since))
            return true;
    return false;
}

bool Succession::may_have_had_it(const Belief& b, Nanos asked) const {
    if (b.lease->mode() == Mode::shared || heard_since(*b.process, asked)) return false;
    const auto read = read_.find(b.name);
    return (read != read_.end() && read->second > asked) ||
           may_have_had_another(b, Mode::shared, asked);
}

Succession::Ends Succession::ends_of_sets(const Belief& b, Nanos since) const {
    Ends may;
    for (const Set& s : sets_) {
        const bool has = std::find(s.names.begin(), s.names.end(), b.name) != s.names.end();
        if (!has || (s.ended < never && s.ended + latest <= since)) continue;
        may.insert(released);
        const LockOptions& o = world_.names[b.name].options;
        if (s.lost || !quiet_since(s.asked) || o.max_hold < forever || !o.renew ||
            world_.history_->may_be_broken(b.name, s.asked))
            may.insert({abandoned, crashed});
    }
    return may;
}

Succession::Set& Succession::begin(std::vector<std::size_t> names) {
    return sets_.emplace_back(Set{std::move(names), world_.kernel.now()});
}

void Succession::ended(Set& s, error_code ec) {
    s.ended = world_.kernel.now();
    s.lost = ec == errc::lost || ec == errc::revoked;
    if (!ec) std::erase_if(sets_, [&](const Set& one) { return &one == &s; });
}

void Succession::comes_back(const std::string& owner) {
    if (Writer* const w = find(owner)) w->outcome.reset();
}

void Succession::let_go(const Belief& b, Outcome outcome, bool lost) {
    Writer* const w = find(b.owner);
    if (w == nullptr) return;
    w->outcome = outcome;
    w->left = world_.kernel.now();
    w->lost = lost;
    const Nanos shown = b.lease->valid_until().time_since_epoch().count();
    // Of one that is far, several tries may end before one has reached the server.
    w->late = b.process->far || b.process->when(shown) < w->left + world_.slack();
    w->broken = world_.history_->may_be_broken(b, false);
}

void Succession::answered(const std::string& owner, ReleaseResult answer, bool lost) {
    Writer* const w = find(owner);
    if (w == nullptr) return;
    w->answer = answer;
    w->lost = w->lost || lost;
}

void Succession::downgraded(const std::string& owner, bool answered) {
    Writer* const w = find(owner);
    if (w == nullptr) return;
    w->less = answered || w->less == Writer::Less::yes ? Writer::Less::yes : Writer::Less::perhaps;
}

void Succession::failed(const Process& client, std::size_t name, Mode mode, Nanos asked) {
    failures_.push_back({name, mode, world_.kernel.now(), heard_since(client, asked)});
}

}  // namespace holdfast::sim
