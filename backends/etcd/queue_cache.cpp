#include "queue_cache.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "errors.hpp"
#include "keys.hpp"

namespace holdfast::etcd {
namespace {

constexpr milliseconds kept_idle{10'000};
constexpr milliseconds shortest_watch{1000};  ///< one that ends earlier is not begun again at once

}  // namespace

QueueCache::QueueCache(std::shared_ptr<Shared> s, std::shared_ptr<Members> m)
    : shared_(std::move(s)), members_(std::move(m)) {}

QueueCache::~QueueCache() = default;

// --- a list

QueueCache::Listing::Listing(QueueCache& l, const std::string& line)
    : queues_(l.shared_from_this()), line_(line) {
    ++queues_->queues_[line_].listings;
}

QueueCache::Listing::~Listing() {
    const auto at = queues_->queues_.find(line_);
    if (at == queues_->queues_.end()) return;
    if (--at->second.listings == 0) at->second.early.clear();
    queues_->drop_if_empty(line_);
}

void QueueCache::Listing::done(const std::vector<KeyValue>& all, std::int64_t revision) {
    const auto at = queues_->queues_.find(line_);
    if (at == queues_->queues_.end()) return;
    Queue& line = at->second;
    if (line.known && line.listed_at >= revision) return;
    line.row = UnitQueue(all);
    line.listed_at = revision;
    line.told_of = 0;
    line.known = true;
    for (const auto& [created, place] : line.waiting)
        if (created <= revision && !line.row.contains(created)) queues_->lost(*place);
    for (const rpc::Event& event : line.early)
        queues_->apply(line, event);
    queues_->watch_from(line_, revision + 1);
    queues_->look(line, 0);
}

// --- places

bool QueueCache::known(const std::string& line) const noexcept {
    const auto at = queues_.find(line);
    return at != queues_.end() && at->second.known;
}

bool QueueCache::crowded(const std::string& line) const noexcept {
    const auto at = queues_.find(line);
    return at != queues_.end() && at->second.known && at->second.row.crowded();
}

void QueueCache::join(const OwnerStatePtr& p) {
    queues_[p->line].waiting[p->created] = p;
}

void QueueCache::may_enter(const OwnerStatePtr& p) {
    if (!p->waits_at_once) return;
    if (std::find(may_enter_.begin(), may_enter_.end(), p) == may_enter_.end())
        may_enter_.push_back(p);
}

void QueueCache::hold(const OwnerState& p) {
    const auto at = queues_.find(p.line);
    if (at == queues_.end()) return;
    if (auto own = at->second.waiting.extract(p.created)) at->second.holding.insert(std::move(own));
}

void QueueCache::leave(const OwnerState& p) noexcept {
    const auto at = queues_.find(p.line);
    if (at == queues_.end()) return;
    Queue& line = at->second;
    for (auto* own : {&line.waiting, &line.holding}) {
        const auto one = own->find(p.created);
        if (one == own->end() || one->second.get() != &p) continue;
        own->erase(one);
        // The next one looks after the line.
        if (!line.waiting.empty()) wake(*line.waiting.begin()->second);
        drop_if_empty(p.line);
        return;
    }
}

void QueueCache::wake(const OwnerState& p) noexcept {
    if (p.state == OwnerState::State::queued) shared_->events->wake(p.owner);
}

void QueueCache::drop_if_empty(const std::string& line) noexcept {
    const auto at = queues_.find(line);
    if (at == queues_.end() || !at->second.unused()) return;
    queues_.erase(at);
    needed_ = boot_clock::now();
}

bool QueueCache::fits(const OwnerState& p) const noexcept {
    const auto at = queues_.find(p.line);
    return at != queues_.end() && at->second.known && at->second.row.fits(p.created);
}

bool QueueCache::foremost(const OwnerState& p) const noexcept {
    const auto at = queues_.find(p.line);
    if (at == queues_.end() || at->second.waiting.empty()) return false;
    const Queue& line = at->second;
    const auto now = boot_clock::now();
    const bool alone =
        std::any_of(line.holding.begin(), line.holding.end(), [now](const auto& own) {
            return own.second->units.exclusive() && now < own.second->valid_until;
        });
    return !alone && line.waiting.begin()->second.get() == &p;
}

const std::string* QueueCache::ahead(const OwnerState& p, std::int64_t* created) const noexcept {
    const auto at = queues_.find(p.line);
    if (at == queues_.end() || !at->second.known) return nullptr;
    return at->second.row.ahead(p.created, created);
}

bool QueueCache::has_waiters() const noexcept {
    return std::any_of(queues_.begin(), queues_.end(), [](const auto& q) {
        return !q.second.waiting.empty() || !q.second.holding.empty() || q.second.listings != 0;
    });
}

void QueueCache::observe(const std::string& line, std::string_view name) {
    queues_[line].observed = name;
    drop_if_empty(line);
}

void QueueCache::listed(const std::string& line, std::int64_t revision) {
    const auto at = queues_.find(line);
    if (at != queues_.end() && !at->second.observed.empty()) watch_from(line, revision + 1);
}

void QueueCache::tell(const Queue& line) {
    if (!line.observed.empty()) shared_->events->changed(line.observed);
}

std::vector<OwnerStatePtr> QueueCache::waiting() const {
    std::vector<OwnerStatePtr> out;
    for (const auto& [name, line] : queues_)
        for (const auto& [created, place] : line.waiting)
            if (place->state == OwnerState::State::queued) out.push_back(place);
    return out;
}

bool QueueCache::drop_abandoned() noexcept {
    bool waited = false;
    const auto decided = [&waited](const OwnerStatePtr& p) {
        if (p->state != OwnerState::State::asked) return true;  // in line, or it has left
        if (p.use_count() > 1) return false;
        waited = true;
        return true;
    };
    may_enter_.erase(std::remove_if(may_enter_.begin(), may_enter_.end(), decided),
                     may_enter_.end());
    std::vector<OwnerStatePtr> all;
    for (const auto& [name, line] : queues_)
        for (const auto* own : {&line.waiting, &line.holding})
            for (const auto& [created, place] : *own)
                if (place.use_count() == 1) {
                    waited =
                        waited || own == &line.waiting || (place->doubt && place->waits_at_once);
                    all.push_back(place);
                }
    for (const OwnerStatePtr& p : all)
        leave(*p);
    return waited;
}

// --- the watch

void QueueCache::watch_from(const std::string& line, std::int64_t revision) {
    if (stopped_) return;
    if (next_ != 0) {
        if (watched_.empty() || watched_ == line) return;
        watched_.clear();
        next_ = std::min(next_, revision);
        return resume();
    }
    if (!watching_) begin_watch();
    watched_ = line;
    next_ = revision;
    gate_.open();
}

void QueueCache::begin_watch() {
    auto task = [](std::shared_ptr<QueueCache> self) -> awaitable<void> {
        auto all = self->watch();
        co_await std::move(all);
    };
    asio::co_spawn(shared_->engine, task(shared_from_this()),
                   [self = shared_from_this()](const std::exception_ptr& thrown) {
                       self->watching_ = false;
                       if (thrown) self->watch_anew();
                   });
    watching_ = true;
}

awaitable<void> QueueCache::watch() {
    const auto self = shared_from_this();
    milliseconds pause{0};
    while (!stopped_) {
        if (next_ == 0) {
            auto wait = gate_.wait(shared_->engine, boot_clock::time_point::max());
            co_await std::move(wait);
            continue;
        }
        const auto begin = boot_clock::now() + pause;
        while (!stopped_ && boot_clock::now() < begin) {
            auto wait = gate_.wait(shared_->engine, begin);
            co_await std::move(wait);
        }
        if (stopped_) break;
        if (next_ == 0) continue;
        resumed_ = false;
        const auto begun = boot_clock::now();
        watcher_ = std::make_shared<Members::Watcher>(
            [this](std::string_view bytes) { return take(bytes); });
        rpc::WatchRequest request;
        rpc::WatchCreateRequest& create = *request.mutable_create_request();
        const std::string& range = watched_.empty() ? shared_->options.root : watched_;
        create.set_key(range);
        create.set_range_end(after(range));
        create.set_start_revision(next_);
        create.set_fragment(true);
        auto following = members_->follow(watcher_, method::watch, request,
                                          boot_clock::now() + shared_->options.request_timeout);
        const error_code failed = co_await std::move(following);
        watcher_.reset();
        following_ = false;
        const bool in_vain = failed || boot_clock::now() < begun + shortest_watch;
        pause = in_vain && !resumed_ ? std::min(pause * 2 + milliseconds(50), milliseconds(1000))
                                     : milliseconds(0);
    }
}

void QueueCache::watch_anew() {
    watcher_.reset();
    following_ = false;
    if (!stopped_) forget();
}

bool QueueCache::take(std::string_view bytes) {
    rpc::WatchResponse& m = message_;
    if (!m.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
    if (m.canceled()) {
        // Compacted beyond what we have seen, most likely: everything is listed anew.
        forget();
        return false;
    }
    following_ = true;
    std::int64_t seen = next_;
    for (const rpc::Event& one : m.events()) {
        // The rest of a revision may be in the next message.
        seen = std::max(seen, one.kv().mod_revision() + (m.fragment() ? 0 : 1));
        event(one);
    }
    if (next_ != 0) next_ = seen;
    return true;
}

void QueueCache::event(const rpc::Event& e) {
    const std::string& key = e.kv().key();
    const auto end = key.rfind('/');
    if (end == key.npos) return;
    const auto at = queues_.find(key.substr(0, end + 1));
    if (at == queues_.end()) return;
    // Only a key that is made or deleted can change who holds; a renewal writes to one.
    if (e.type() == rpc::Event::DELETE || e.kv().create_revision() == e.kv().mod_revision())
        tell(at->second);
    if (at->second.listings != 0) at->second.early.push_back(e);
    if (!at->second.known) return;
    const std::int64_t before = at->second.row.reach();
    apply(at->second, e);
    look(at->second, before);
}

void QueueCache::apply(Queue& line, const rpc::Event& e) {
    const rpc::KeyValue& kv = e.kv();
    // A watch that begins again for further lines tells of the others once more.
    if (kv.mod_revision() <= line.listed_at || kv.mod_revision() < line.told_of) return;
    line.told_of = kv.mod_revision();
    const std::int64_t known = line.row.created(kv.key());
    if (e.type() == rpc::Event::DELETE) {
        // After a new list the watch may tell again what it has told, of a key that is there anew.
        if (known == 0 || kv.mod_revision() < known) return;
        line.row.remove(known);
        if (const auto own = line.waiting.find(known); own != line.waiting.end())
            lost(*own->second);
        else
            risk(line, known);
        return;
    }
    if (kv.create_revision() == kv.mod_revision()) {
        if (kv.create_revision() <= known) return;
        line.row.remove(known);
        return line.row.add(read_key_value(kv));
    }
    line.row.change(kv.create_revision(), kv.value());
    if (const auto own = line.holding.find(kv.create_revision());
        own != line.holding.end() && kv.value() != own->second->value)
        risk(line, kv.create_revision());
}

void QueueCache::risk(const Queue& line, std::int64_t created) {
    const auto own = line.holding.find(created);
    if (own != line.holding.end() && own->second->state == OwnerState::State::held)
        shared_->events->at_risk(own->second->owner);
}

void QueueCache::lost(OwnerState& p) {
    if (p.state != OwnerState::State::queued) return;
    p.state = OwnerState::State::gone;
    shared_->events->wake(p.owner);
}

void QueueCache::look(Queue& line, std::int64_t beyond) {
    // A line of mutexes always has its first one woken.
    const std::int64_t reach = line.row.reach();
    for (auto own = line.waiting.upper_bound(std::min(beyond, reach - 1));
         own != line.waiting.end() && own->first <= reach; ++own)
        if (line.row.contains(own->first)) wake(*own->second);
}

void QueueCache::forget() {
    next_ = 0;
    for (auto& [name, line] : queues_) {
        line.known = false;
        if (!line.waiting.empty()) wake(*line.waiting.begin()->second);
        tell(line);
    }
}

void QueueCache::begin_anew(std::int64_t revision) {
    for (auto& [name, line] : queues_) {
        line.listed_at = line.told_of = 0;
        line.early.clear();
        for (const auto& [created, place] : line.waiting)
            if (created > revision) lost(*place);
        for (const auto& [created, place] : line.holding)
            if (created > revision) risk(line, created);
    }
    forget();
    resume();
}

void QueueCache::resume() noexcept {
    resumed_ = true;
    if (watcher_) watcher_->end();
}

void QueueCache::tidy() noexcept {
    if (!queues_.empty() || next_ == 0 || boot_clock::now() < needed_ + kept_idle) return;
    next_ = 0;
    resume();
}

void QueueCache::stop() noexcept {
    stopped_ = true;
    if (watcher_) watcher_->end();
    gate_.open();
}

}  // namespace holdfast::etcd
