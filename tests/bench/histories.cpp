#include "histories.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <queue>
#include <stdexcept>

namespace histories {

Folder::Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "histories-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
}

std::string Log::bytes() const {
    std::string out;
    history::Header head = header;
    history::seal(head);
    out.append(reinterpret_cast<const char*>(&head), sizeof head);
    for (Record r : records) {
        history::seal(r);
        out.append(reinterpret_cast<const char*>(&r), sizeof r);
    }
    return out;
}

std::vector<std::filesystem::path> World::save(const std::filesystem::path& folder) const {
    std::vector<std::filesystem::path> files;
    for (const Log& log : logs) {
        files.push_back(folder / std::to_string(files.size()));
        const std::string bytes = log.bytes();
        std::ofstream(files.back(), std::ios::binary)
            .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    return files;
}

history::Verdict World::judge(const history::Limits& limits) const {
    const Folder folder;
    return history::check_files(save(folder.path()), limits);
}

namespace {

/// Different within the bytes that a record keeps.
std::string owner_of(std::uint64_t id) {
    return std::to_string(id % 1'000'000'007U) + "." + std::to_string(id >> 32U);
}

/// One name and its server. Times are small numbers, so that many things happen at once.
class Game {
public:
    Game(Random& random, const Shape& shape, World& world, std::uint16_t name,
         const std::vector<Nanos>& kill, std::vector<std::uint32_t>& numbers)
        : random_(random),
          shape_(shape),
          world_(world),
          name_(name),
          kill_(kill),
          numbers_(numbers) {
        for (int p = 0; p < shape.processes; ++p)
            rounds_.push_back(shape.rounds);
    }
    void play();

private:
    enum class What {
        invoke,
        arrive,
        reply,
        expire,
        time_out,
        withdraw,
        renew,
        renewed,
        write,
        end,
        free,
        freed
    };
    struct Event {
        Nanos at = 0;
        std::uint64_t order = 0;
        What what{};
        std::size_t a = 0;  ///< acquisition; for invoke: process
        bool operator>(const Event& e) const { return at != e.at ? at > e.at : order > e.order; }
    };
    struct Acq {
        std::size_t process = 0;
        std::uint64_t id = 0, token = 0;
        Nanos until = 0, invoked_renewal = 0;
        bool waiting = true, queued = false, withdrawn = false, granted = false, over = false;
        bool abandoned = false;
        history::Previous previous{};
    };

    void at(Nanos t, What what, std::size_t a) { events_.push({t, ++order_, what, a}); }
    Nanos soon() { return pick(random_, 1, 20); }
    bool dead(const Acq& a, Nanos t) const { return t > kill_[a.process]; }
    Record& put(Kind kind, const Acq& a, Nanos t, std::uint8_t detail = 0, Nanos until = 0) {
        return put(a.process, kind, a.id, t, detail, until);
    }
    Record& put(std::size_t log, Kind kind, std::uint64_t id, Nanos t, std::uint8_t detail,
                Nanos until) {
        Record r;
        r.kind = kind;
        r.detail = detail;
        r.name = name_;
        r.id = id;
        r.at = t;
        r.until = until;
        return world_.logs[log].records.emplace_back(r);
    }
    void happen(const Event&);
    void invoke(std::size_t process, Nanos t);
    void grant(Nanos t);
    void reply(std::size_t a, Nanos t);
    void end(std::size_t a, Nanos t);
    void write(std::size_t a, Nanos t);
    void leave(history::Previous p, Nanos t) {
        holder_ = none;
        previous_ = p;
        grant(t);
    }

    static constexpr std::size_t none = ~std::size_t{0};
    static constexpr Nanos ttl = 300;
    Random& random_;
    const Shape& shape_;
    World& world_;
    std::uint16_t name_;
    const std::vector<Nanos>& kill_;
    std::vector<std::uint32_t>& numbers_;
    std::vector<int> rounds_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t order_ = 0, token_ = 10, fence_ = 0;
    std::vector<Acq> acqs_;
    std::vector<std::size_t> queue_;
    std::size_t holder_ = none, last_client_ = none;
    Nanos expiry_ = 0;
    history::Previous previous_ = history::Previous::none;
};

void Game::play() {
    for (std::size_t p = 0; p < rounds_.size(); ++p)
        at(soon(), What::invoke, p);
    while (!events_.empty()) {
        const Event e = events_.top();
        events_.pop();
        happen(e);
    }
}

void Game::invoke(std::size_t p, Nanos t) {
    if (rounds_[p]-- <= 0 || t > kill_[p]) return;
    Acq a;
    a.process = p;
    a.id = std::uint64_t{world_.logs[p].header.recorder} << 32U | ++numbers_[p];
    put(Kind::invoked, a, t);
    acqs_.push_back(a);
    at(t + soon(), What::arrive, acqs_.size() - 1);
    const bool short_wait = shape_.errors && chance(random_, 0.15);
    at(t + (short_wait ? pick(random_, 5, 200) : 1'000'000), What::time_out, acqs_.size() - 1);
}

void Game::grant(Nanos t) {
    if (holder_ != none || queue_.empty()) return;
    const auto next = shape_.fifo ? 0 : pick(random_, 0, std::ssize(queue_) - 1);
    holder_ = queue_[static_cast<std::size_t>(next)];
    queue_.erase(queue_.begin() + next);
    Acq& a = acqs_[holder_];
    a.queued = false;
    if (!a.waiting) ++world_.held_after;
    a.token = token_ += static_cast<std::uint64_t>(pick(random_, 3, 6));
    a.previous = previous_;
    expiry_ = t + ttl;
    a.until = expiry_ - pick(random_, 0, 40);
    at(expiry_, What::expire, holder_);
    // A reply may be lost, or come after the lease is over.
    const bool late = shape_.pauses && chance(random_, 0.03);
    if (!shape_.errors || !shape_.lost_replies || !chance(random_, 0.05))
        at(t + (late ? pick(random_, 200, 500) : soon()), What::reply, holder_);
    else
        at(t + soon(), What::time_out, holder_);
}

void Game::reply(std::size_t i, Nanos t) {
    Acq& a = acqs_[i];
    if (!a.waiting || dead(a, t)) return;
    a.waiting = false;
    a.granted = true;
    const bool mute = chance(random_, 0.05);
    Record& r =
        put(Kind::granted, a, t,
            static_cast<std::uint8_t>(mute ? history::Previous::unknown : a.previous), a.until);
    r.token = a.token;
    history::put_text(r.owner, owner_of(a.id));
    last_client_ = i;
    const bool pause = shape_.pauses && chance(random_, 0.06);
    const Nanos stay = pause ? pick(random_, 300, 900) : pick(random_, 1, 60);
    if (chance(random_, 0.3)) at(t + pick(random_, 1, 50), What::renew, i);
    for (auto n = pick(random_, 0, 3); n > 0; --n)
        at(t + pick(random_, 1, stay) + soon(), What::write, i);
    at(t + stay, What::end, i);
}

void Game::end(std::size_t i, Nanos t) {
    Acq& a = acqs_[i];
    if (dead(a, t)) return;
    a.over = true;
    const bool lost = t >= a.until;
    if (lost) put(Kind::lost, a, t, 0, a.until);
    at(t + soon(), What::invoke, a.process);
    if (lost && chance(random_, 0.5)) return;
    a.abandoned = chance(random_, 0.1);
    put(Kind::releasing, a, t, a.abandoned ? 1 : 0, a.until);
    at(t + soon(), What::free, i);
}

void Game::write(std::size_t i, Nanos t) {
    const Acq& a = acqs_[i];
    if (dead(a, t)) return;
    const std::size_t store = world_.logs.size() - 1;
    const bool id = chance(random_, 0.5);
    if (last_client_ != i) ++world_.stale;
    put(store, Kind::write, id ? a.id : 0, t, history::write_accepted, 1).token = a.token;
    const bool fine = a.token >= fence_;
    fence_ = std::max(fence_, a.token);
    put(store, Kind::write, 0, t,
        static_cast<std::uint8_t>((fine ? history::write_accepted : 0) | history::store_is_fenced),
        2)
        .token = a.token;
}

void Game::happen(const Event& e) {
    const Nanos t = e.at;
    if (e.what == What::invoke) return invoke(e.a, t);
    Acq& a = acqs_[e.a];
    switch (e.what) {
        case What::arrive:
            if (a.withdrawn) return;
            queue_.push_back(e.a);
            a.queued = true;
            if (chance(random_, 0.4)) put(world_.logs.size() - 1, Kind::in_line, a.id, t + 1, 0, 0);
            return grant(t);
        case What::reply:
            return reply(e.a, t);
        case What::expire:
            if (holder_ != e.a) return;
            if (expiry_ > t) return at(expiry_, What::expire, e.a);
            return leave(history::Previous::crashed, t);
        case What::time_out: {
            if (!a.waiting || dead(a, t)) return;
            a.waiting = false;
            if (holder_ == e.a) ++world_.held_after;
            Record& r =
                put(Kind::failed, a, t,
                    static_cast<std::uint8_t>(holder_ == e.a ? history::Outcome::in_doubt
                                                             : history::Outcome::timed_out));
            history::put_text(r.owner, owner_of(a.id));
            at(t + soon(), What::withdraw, e.a);
            return at(t + soon(), What::invoke, a.process);
        }
        case What::withdraw:
            a.withdrawn = true;
            std::erase(queue_, e.a);
            if (holder_ == e.a) leave(history::Previous::crashed, t);
            return;
        case What::renew:
            if (a.over || dead(a, t) || holder_ != e.a) return;
            expiry_ = std::max(expiry_, t + ttl);
            a.invoked_renewal = t;
            return at(t + soon(), What::renewed, e.a);
        case What::renewed:
            if (a.over || dead(a, t) || t >= a.until) return;
            a.until = std::max(a.until, a.invoked_renewal + ttl);
            put(Kind::renewed, a, t, 0, a.until);
            return;
        case What::write:
            return write(e.a, t);
        case What::end:
            return end(e.a, t);
        case What::free: {
            const bool mine = holder_ == e.a;
            at(t + soon(), What::freed, e.a);
            a.withdrawn = mine;  // from here on: whether the server knew it
            if (mine)
                leave(a.abandoned ? history::Previous::abandoned : history::Previous::released, t);
            return;
        }
        case What::freed:
            if (dead(a, t)) return;
            put(Kind::released, a, t,
                static_cast<std::uint8_t>(a.withdrawn ? history::Answer::released
                                                      : history::Answer::already_expired));
            return;
        case What::invoke:
            return;
    }
}

Log log_of(Random& random, const std::string& label, const Shape& shape) {
    Log log;
    log.header.magic = history::magic;
    log.header.version = history::format_version;
    log.header.recorder = static_cast<std::uint32_t>(random() | 1U);
    log.header.process = static_cast<std::int32_t>(pick(random, 2, 30000));
    history::put_text(log.header.boot, "0123456789abcdef");
    history::put_text(log.header.label, label);
    for (int n = 1; n <= shape.names; ++n) {
        Record r;
        r.kind = Kind::name;
        r.detail = static_cast<std::uint8_t>(history::declares_fencing |
                                             (shape.fifo ? history::declares_fifo : 0));
        r.name = static_cast<std::uint16_t>(n);
        const std::string text = "test/" + std::to_string(n);
        r.id = std::uint64_t{text.size()} << 32U;
        history::NamePart part{};
        history::put_text(part, text);
        std::memcpy(reinterpret_cast<char*>(&r) + offsetof(Record, until), part.data(),
                    part.size());
        log.records.push_back(r);
    }
    return log;
}

}  // namespace

World correct(Random& random, const Shape& shape) {
    World world;
    std::vector<Nanos> kill;
    std::vector<std::uint32_t> numbers;
    for (int p = 0; p < shape.processes; ++p) {
        world.logs.push_back(log_of(random, "p" + std::to_string(p), shape));
        const bool killed = shape.kills && chance(random, 0.4);
        kill.push_back(killed ? pick(random, 1, 100 * shape.rounds) : history::never);
        numbers.push_back(0);
    }
    world.logs.push_back(log_of(random, "stores", shape));
    for (int n = 1; n <= shape.names; ++n)
        Game(random, shape, world, static_cast<std::uint16_t>(n), kill, numbers).play();
    kill.push_back(history::never);
    for (std::size_t p = 0; p < world.logs.size(); ++p) {
        auto& records = world.logs[p].records;
        std::stable_sort(records.begin(), records.end(),
                         [](const Record& x, const Record& y) { return x.at < y.at; });
        if (kill[p] != history::never) continue;
        Record closed;
        closed.kind = Kind::closed;
        closed.at = records.back().at + 1;
        records.push_back(closed);
    }
    return world;
}

std::vector<Trace> traces(const World& world) {
    std::map<std::uint64_t, Trace> all;
    for (std::size_t l = 0; l < world.logs.size(); ++l)
        for (std::size_t i = 0; i < world.logs[l].records.size(); ++i) {
            const Record& r = world.logs[l].records[i];
            if (r.kind < Kind::invoked || r.kind > Kind::failed) continue;
            Trace& t = all[r.id];
            t.id = r.id;
            t.name = r.name;
            t.at[r.kind] = {l, i};
        }
    std::vector<Trace> out;
    for (auto& [id, trace] : all)
        out.push_back(trace);
    const auto granted = [&](const Trace& t) {
        if (!t.has(Kind::granted)) return history::never;
        const Spot s = t.at.at(Kind::granted);
        return world.logs[s.log].records[s.record].at;
    };
    std::stable_sort(out.begin(), out.end(),
                     [&](const Trace& x, const Trace& y) { return granted(x) < granted(y); });
    return out;
}

}  // namespace histories
