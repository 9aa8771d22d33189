#include "lines.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "errors.hpp"
#include "keys.hpp"

namespace holdfast::etcd {
namespace {

namespace js = boost::json;

constexpr milliseconds kept_idle{10'000};
constexpr std::size_t longest_message = 8U << 20U;
constexpr milliseconds shortest_watch{1000};  ///< one that ends earlier is not begun again at once

bool is_deletion(const js::object& event) {
    return text(event, "type") == "DELETE";
}

}  // namespace

Lines::Lines(std::shared_ptr<Shared> s, std::shared_ptr<Members> m)
    : shared_(std::move(s)), members_(std::move(m)) {}

Lines::~Lines() = default;

// --- a list
// ---------------------------------------------------------------------------------------

Lines::Listing::Listing(Lines& l, const std::string& line)
    : lines_(l.shared_from_this()), line_(line) {
    ++lines_->lines_[line_].listings;
}

Lines::Listing::~Listing() {
    const auto at = lines_->lines_.find(line_);
    if (at == lines_->lines_.end()) return;
    if (--at->second.listings == 0) at->second.early.clear();
    lines_->drop_if_empty(line_);
}

void Lines::Listing::done(const std::vector<KeyValue>& all, std::int64_t revision) {
    const auto at = lines_->lines_.find(line_);
    if (at == lines_->lines_.end()) return;
    Line& line = at->second;
    if (line.known && line.listed_at >= revision) return;
    line.row = Row(all);
    line.listed_at = revision;
    line.known = true;
    for (const auto& [created, place] : line.waiting)
        if (created <= revision && !line.row.contains(created)) lines_->lost(*place);
    for (const js::object& event : line.early)
        lines_->apply(line, event);
    lines_->watch_from(revision + 1);
    lines_->look(line, 0);
}

// --- places
// ---------------------------------------------------------------------------------------

bool Lines::known(const std::string& line) const noexcept {
    const auto at = lines_.find(line);
    return at != lines_.end() && at->second.known;
}

void Lines::join(const PlacePtr& p) {
    lines_[p->line].waiting[p->created] = p;
}

void Lines::hold(const Place& p) {
    const auto at = lines_.find(p.line);
    if (at == lines_.end()) return;
    if (auto own = at->second.waiting.extract(p.created)) at->second.holding.insert(std::move(own));
}

void Lines::leave(const Place& p) noexcept {
    const auto at = lines_.find(p.line);
    if (at == lines_.end()) return;
    Line& line = at->second;
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

void Lines::wake(const Place& p) noexcept {
    if (p.state == Place::State::queued) shared_->events->wake(p.owner);
}

void Lines::drop_if_empty(const std::string& line) noexcept {
    const auto at = lines_.find(line);
    if (at == lines_.end() || !at->second.unused()) return;
    lines_.erase(at);
    needed_ = boot_clock::now();
}

bool Lines::fits(const Place& p) const noexcept {
    const auto at = lines_.find(p.line);
    return at != lines_.end() && at->second.known && at->second.row.fits(p.created);
}

bool Lines::foremost(const Place& p) const noexcept {
    const auto at = lines_.find(p.line);
    if (at == lines_.end() || at->second.waiting.empty()) return false;
    const Line& line = at->second;
    const auto now = boot_clock::now();
    const bool alone =
        std::any_of(line.holding.begin(), line.holding.end(), [now](const auto& own) {
            return own.second->units.exclusive() && now < own.second->valid_until;
        });
    return !alone && line.waiting.begin()->second.get() == &p;
}

const std::string* Lines::ahead(const Place& p, std::int64_t* created) const noexcept {
    const auto at = lines_.find(p.line);
    if (at == lines_.end() || !at->second.known) return nullptr;
    return at->second.row.ahead(p.created, created);
}

std::vector<PlacePtr> Lines::waiting() const {
    std::vector<PlacePtr> out;
    for (const auto& [name, line] : lines_)
        for (const auto& [created, place] : line.waiting)
            if (place->state == Place::State::queued) out.push_back(place);
    return out;
}

bool Lines::drop_abandoned() noexcept {
    bool waited = false;
    std::vector<PlacePtr> all;
    for (const auto& [name, line] : lines_)
        for (const auto* own : {&line.waiting, &line.holding})
            for (const auto& [created, place] : *own)
                if (place.use_count() == 1) {
                    waited = waited || own == &line.waiting;
                    all.push_back(place);
                }
    for (const PlacePtr& p : all)
        leave(*p);
    return waited;
}

// --- the watch
// ------------------------------------------------------------------------------------

void Lines::watch_from(std::int64_t revision) {
    if (next_ != 0 || stopped_) return;
    next_ = revision;
    gate_.open();
    if (std::exchange(watching_, true)) return;
    auto task = [](std::shared_ptr<Lines> self) -> awaitable<void> {
        auto all = self->watch();
        co_await std::move(all);
    };
    asio::co_spawn(shared_->engine, task(shared_from_this()), asio::detached);
}

awaitable<void> Lines::watch() {
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
        partial_.clear();
        resumed_ = false;
        const auto begun = boot_clock::now();
        stream_ = Members::make_stream([this](std::string_view bytes) { take(bytes); });
        std::string body = "{\"create_request\":{\"key\":\"" + base64(shared_->options.root) +
                           "\",\"range_end\":\"" + base64(after(shared_->options.root)) +
                           "\",\"start_revision\":\"" + std::to_string(next_) + "\"}}";
        auto following = members_->follow(stream_, "watch", std::move(body),
                                          boot_clock::now() + shared_->options.request_timeout);
        const error_code failed = co_await std::move(following);
        stream_.reset();
        following_ = false;
        const bool in_vain = failed || boot_clock::now() < begun + shortest_watch;
        pause = in_vain && !resumed_ ? std::min(pause * 2 + milliseconds(50), milliseconds(1000))
                                     : milliseconds(0);
    }
    watching_ = false;
}

void Lines::take(std::string_view bytes) {
    std::size_t begin = 0;
    const std::size_t before = partial_.size();
    partial_ += bytes;
    for (auto end = partial_.find('\n', before); end != partial_.npos;
         end = partial_.find('\n', begin)) {
        boost::system::error_code bad;
        const js::value v = js::parse(std::string_view(partial_).substr(begin, end - begin), bad);
        begin = end + 1;
        const js::object* all = bad ? nullptr : v.if_object();
        const js::object* result = all != nullptr ? object(*all, "result") : nullptr;
        if (result == nullptr) return Members::end(*stream_);
        message(*result);
    }
    partial_.erase(0, begin);
    if (partial_.size() > longest_message) Members::end(*stream_);
}

void Lines::message(const js::object& m) {
    const js::value* canceled = m.if_contains("canceled");
    if (canceled != nullptr && canceled->is_bool() && canceled->get_bool()) {
        // Compacted beyond what we have seen, most likely: everything is listed anew.
        forget();
        return Members::end(*stream_);
    }
    following_ = true;
    const js::array* events = array(m, "events");
    if (events == nullptr) return;
    std::int64_t seen = next_;
    for (const js::value& one : *events) {
        if (!one.is_object()) continue;
        const js::object& o = one.get_object();
        if (const js::object* kv = object(o, "kv"))
            seen = std::max(seen, number(*kv, "mod_revision") + 1);
        event(o);
    }
    if (next_ != 0) next_ = seen;
}

void Lines::event(const js::object& e) {
    const js::object* kv = object(e, "kv");
    if (kv == nullptr) return;
    const std::string key = from_base64(text(*kv, "key"));
    const auto end = key.rfind('/');
    if (end == key.npos) return;
    const auto at = lines_.find(key.substr(0, end + 1));
    if (at == lines_.end()) return;
    if (at->second.listings != 0) at->second.early.push_back(e);
    if (!at->second.known) return;
    const std::int64_t before = at->second.row.reach();
    apply(at->second, e);
    look(at->second, before);
}

void Lines::apply(Line& line, const js::object& e) {
    const KeyValue kv = read_key_value(*object(e, "kv"));
    if (kv.modified <= line.listed_at) return;
    const std::int64_t known = line.row.created(kv.key);
    if (is_deletion(e)) {
        // After a new list the watch may tell again what it has told, of a key that is there anew.
        if (known == 0 || kv.modified < known) return;
        line.row.remove(known);
        if (const auto own = line.waiting.find(known); own != line.waiting.end())
            lost(*own->second);
        else
            risk(line, known);
        return;
    }
    if (kv.created == kv.modified) {
        if (kv.created <= known) return;
        line.row.remove(known);
        return line.row.add(kv);
    }
    line.row.change(kv.created, kv.value);
    if (const auto own = line.holding.find(kv.created);
        own != line.holding.end() && kv.value != own->second->value)
        risk(line, kv.created);
}

void Lines::risk(const Line& line, std::int64_t created) {
    const auto own = line.holding.find(created);
    if (own != line.holding.end() && own->second->state == Place::State::held)
        shared_->events->at_risk(own->second->owner);
}

void Lines::lost(Place& p) {
    if (p.state != Place::State::queued) return;
    p.state = Place::State::gone;
    shared_->events->wake(p.owner);
}

void Lines::look(Line& line, std::int64_t beyond) {
    // A line of mutexes always has its first one woken.
    const std::int64_t reach = line.row.reach();
    for (auto own = line.waiting.upper_bound(std::min(beyond, reach - 1));
         own != line.waiting.end() && own->first <= reach; ++own)
        if (line.row.contains(own->first)) wake(*own->second);
}

void Lines::forget() {
    next_ = 0;
    for (auto& [name, line] : lines_) {
        line.known = false;
        if (!line.waiting.empty()) wake(*line.waiting.begin()->second);
    }
}

void Lines::begin_anew(std::int64_t revision) {
    for (auto& [name, line] : lines_) {
        line.listed_at = 0;
        line.early.clear();
        for (const auto& [created, place] : line.waiting)
            if (created > revision) lost(*place);
        for (const auto& [created, place] : line.holding)
            if (created > revision) risk(line, created);
    }
    forget();
    resume();
}

void Lines::resume() noexcept {
    resumed_ = true;
    if (stream_) Members::end(*stream_);
}

void Lines::tidy() noexcept {
    if (!lines_.empty() || next_ == 0 || boot_clock::now() < needed_ + kept_idle) return;
    next_ = 0;
    resume();
}

void Lines::stop() noexcept {
    stopped_ = true;
    if (stream_) Members::end(*stream_);
    gate_.open();
}

}  // namespace holdfast::etcd
