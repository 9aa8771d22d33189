#include "redis_order.hpp"

#include <algorithm>
#include <sstream>

namespace holdfast::sim {
namespace {

/// Of a lease; what its holder notes of itself comes after it.
bool is_owner(const std::string& word) {
    return word.find(".sim.4711") != word.npos;
}

/// Another key of a lock (backends/redis/README.md, "Keys").
std::string key_beside(const std::string& lock, char which) {
    if (!lock.starts_with('{')) return "{" + lock + "}:hf:" + which;
    return lock.substr(0, lock.find('}')) + "}:hf:" + which + ":" + lock;
}

std::uint64_t units_of(const Name& n) {
    return n.options.kind == Kind::semaphore ? std::max(n.options.limit, n.next_limit) : 4294967295;
}

}  // namespace

RedisOrder::RedisOrder(Redis& server, std::vector<Name> names)
    : server_(server), names_(std::move(names)), lines_(names_.size()), grants_(names_.size()) {}

bool RedisOrder::Line::stands(const std::string& owner) const {
    return std::any_of(waiters.begin(), waiters.end(),
                       [&](const Waiter& w) { return w.owner == owner; });
}

bool RedisOrder::has(const model::Store& store, const Name& n, const std::string& owner) {
    const auto* lock = store.find(n.text);
    if (lock == nullptr) return false;
    if (lock->text == owner) return true;
    const auto* parts = store.find(key_beside(n.text, 'r'));
    return lock->text.starts_with("hf:") && parts != nullptr && parts->scores.contains(owner);
}

std::string RedisOrder::contradicts(const model::Store& store, const Process& machine,
                                    const Belief& b, const Name& n) {
    const auto* lock = store.find(n.text);
    if (lock == nullptr) return "its key is not there";
    Nanos until = lock->expires;
    if (lock->text != b.owner) {
        const auto* parts = store.find(key_beside(n.text, 'r'));
        const bool marked = lock->text.starts_with("hf:s:") || lock->text.starts_with("hf:p:");
        if (!marked || parts == nullptr) return "its key says " + lock->text;
        for (std::uint32_t i = 1; i <= b.lease->permits(); ++i) {
            const auto part =
                parts->scores.find(i == 1 ? b.owner : b.owner + "#" + std::to_string(i));
            if (part == parts->scores.end()) return "a part of it is not there";
            until = std::min(until, static_cast<Nanos>(part->second));
        }
    }
    const Nanos believed = b.process->when(b.lease->valid_until().time_since_epoch().count());
    until -= n.options.lock_delay.count();
    if (machine.when(until * ms) >= believed) return {};
    return "the server ends it " + std::to_string((believed - machine.when(until * ms)) / us) +
           " us before it does";
}

std::string RedisOrder::stands(const Name& n) const {
    const model::Store& store = server_.store();
    constexpr std::int64_t at_once = 5;  // what was sent together
    for (const Waiter& w : line_of(store, n).waiters) {
        const auto last = last_heard_.find(w.owner);
        if (w.alive > store.now || last == last_heard_.end()) return w.owner;
        const auto& times = heard_.at(last->second.client);
        const auto next = std::lower_bound(times.begin(), times.end(), last->second.at + at_once);
        if (next != times.end() && *next < w.alive) return w.owner;
    }
    return {};
}

RedisOrder::Line RedisOrder::line_of(const model::Store& store, const Name& n) {
    Line out;
    const auto *lock = store.find(n.text), *parts = store.find(key_beside(n.text, 'r')),
               *line = store.find(key_beside(n.text, 'q')),
               *records = store.find(key_beside(n.text, 'w'));
    if (lock != nullptr && !lock->text.starts_with("hf:")) out.holders[lock->text] = all;
    if (lock != nullptr && lock->text.starts_with("hf:") && parts != nullptr)
        for (const auto& [member, ends] : parts->scores)
            if (ends >= static_cast<double>(store.now))
                ++out.holders[member.substr(0, member.find('#'))];
    if (line == nullptr || records == nullptr) return out;
    std::vector<std::pair<double, std::string>> places;
    for (const auto& [owner, place] : line->scores)
        places.emplace_back(place, owner);
    std::sort(places.begin(), places.end());
    for (const auto& [place, owner] : places) {
        const auto record = records->fields.find(owner);
        if (record == records->fields.end()) continue;
        // "ALIVE PX CHANNEL TAKE OF", where the channel may be empty and the rest missing.
        std::istringstream in(record->second);
        std::int64_t alive = 0, px = 0;
        in >> alive >> px;
        in.get();
        Waiter w{owner, {}, all, alive, place};
        std::getline(in, w.channel, ' ');
        if (std::uint64_t take = 0; in >> take) w.take = take;
        out.waiters.push_back(std::move(w));
    }
    return out;
}

std::string RedisOrder::compare(const Line& before, const Line& now, const Name& n) const {
    for (const Waiter& w : now.waiters)
        if (!before.stands(w.owner) && left_.contains(w.owner))
            return w.owner.substr(0, 6) + " has left, and stands in line again";
    for (const auto& [owner, units] : now.holders) {
        if (before.holders.contains(owner) || owner.starts_with('=')) continue;
        if (foreign_.contains(owner)) continue;  // it knows of no line
        if (left_.contains(owner)) return owner.substr(0, 6) + " has left, and holds again";
        const auto first = came_.find(owner);
        std::uint64_t sum = 0;
        // Who comes back to an earlier place in the same request may do so after this grant.
        for (const auto& [each, theirs] : now.holders)
            if (each == owner || before.holders.contains(each) || before.stands(each))
                sum += theirs;
        for (const Waiter& w : before.waiters) {
            if (w.owner == owner || (first != came_.end() && first->second < w.place)) break;
            if (w.alive < server_.store().now || !now.stands(w.owner)) continue;
            // One that has ceased to listen may have been killed: nobody waits for it before it
            // looks.
            const bool reached = !w.channel.empty() && server_.listens(w.channel);
            const bool looks = w.channel.empty() || silent_.contains(w.owner);
            if (looks) sum += w.take;
            if (reached || (looks && sum > units_of(n)))
                return owner.substr(0, 6) + " has passed " + w.owner.substr(0, 6) + " in line";
        }
    }
    return {};
}

/// A grant keeps its units for min_hold, whatever becomes of it, unless nobody learnt of it.
std::string RedisOrder::compare_closed(std::size_t name, const Line& before, const Line& now) {
    const Name& n = names_[name];
    const std::int64_t closed = n.options.min_hold.count();
    if (closed == 0) return {};
    const model::Store& store = server_.store();
    auto& grants = grants_[name];
    std::erase_if(grants, [&](const Grant& g) {
        // Who is gone without having left was broken, and the name freed at once.
        const bool gone = !now.holders.contains(g.owner) && !left_.contains(g.owner);
        return g.at + closed <= store.now || unused_.contains(g.owner) || gone;
    });
    for (Grant& g : grants)
        if (const auto at = now.holders.find(g.owner); at != now.holders.end())
            g.units = at->second;  // it may read by now
    bool granted = false;
    for (const auto& [owner, units] : now.holders)
        if (!before.holders.contains(owner) && !owner.starts_with('=')) {
            grants.push_back({owner, store.now, units});
            granted = true;
        }
    std::uint64_t sum = 0;
    for (const Grant& g : grants)
        sum += g.units;
    if (granted && sum > units_of(n)) return "closed for less than min_hold: " + n.text;
    // What a client adds for a clock that is not the server's.
    const std::int64_t most = closed + closed / 50 + 5;
    const auto *lock = store.find(n.text), *parts = store.find(key_beside(n.text, 'r'));
    bool longer = lock != nullptr && lock->text == "hf:m" && lock->expires > store.now + most;
    if (parts != nullptr)
        for (const auto& [member, ends] : parts->scores)
            longer =
                longer || (member.starts_with('=') && ends > static_cast<double>(store.now + most));
    return longer ? "closed for longer than min_hold: " + n.text : "";
}

/// OWNER HOW UNTIL and two more for each lock, HOW one letter: no other request is like that. Where
/// the answer is 'u' nothing was done: the line is one of another kind, and is asked again as that.
void RedisOrder::note_leaving(const std::vector<std::string>& command, const std::string& reply) {
    if (command.size() < 8 || !command[0].starts_with("EVAL")) return;
    const std::size_t keys = std::stoul(command[2]), first = 3 + keys;
    const std::size_t arguments = command.size() - std::min(command.size(), first);
    if (arguments == 0 || arguments % 5 != 0 || (keys != arguments && keys != arguments / 5 * 6))
        return;
    for (std::size_t at = first; at < command.size(); at += 5)
        if (command[at + 1] != "r" && command[at + 1] != "a" && command[at + 1] != "u") return;
    std::istringstream in(reply);
    std::vector<std::string> answers;
    for (std::string line; std::getline(in, line);)
        if (!line.starts_with('*') && !line.starts_with('$')) answers.push_back(line);
    for (std::size_t at = first, i = 0; at < command.size() && i < answers.size(); at += 5, ++i)
        if (answers[i] != "u\r") {
            left_.insert(command[at]);
            if (command[at + 1] == "u") unused_.insert(command[at]);
        }
}

/// A request that was under way for long names a later place than the one after it.
void RedisOrder::came(const std::string& owner, double place) {
    const auto at = came_.try_emplace(owner, place).first;
    at->second = std::min(at->second, place);
}

/// One that polls says how long ago its first request was: that is its place, also where it holds
/// at once.
void RedisOrder::note_coming(const std::vector<std::string>& command) {
    constexpr std::size_t arguments = 5;  // the last one of them, or the one before
    for (std::size_t at = 0; at < command.size(); ++at) {
        if (!is_owner(command[at])) continue;
        const std::size_t end = std::min(command.size(), at + 1 + arguments);
        for (std::size_t i = at + 1; i < end && !is_owner(command[i]); ++i)
            if (command[i].size() > 1 && command[i].front() == '-')
                came(command[at],
                     static_cast<double>(server_.store().now * 1000) + std::stod(command[i]));
    }
}

std::string RedisOrder::look(const std::vector<std::string>& command, const std::string& reply,
                             const Process& client) {
    std::string out;
    note_leaving(command, reply);
    note_coming(command);
    if (command.size() > 2 && command[0] == "SET") foreign_.insert(command[2]);
    const model::Store& store = server_.store();
    heard_[&client].push_back(store.now);
    for (const std::string& word : command)
        if (is_owner(word)) last_heard_[word] = {&client, store.now};
    for (std::size_t i = 0; i < names_.size(); ++i) {
        Line now = line_of(store, names_[i]);
        for (const Waiter& w : now.waiters)
            came(w.owner, w.place);
        if (out.empty()) out = compare(lines_[i], now, names_[i]);
        if (out.empty()) out = compare_closed(i, lines_[i], now);
        for (const Waiter& w : lines_[i].waiters) {
            const auto at = std::find_if(now.waiters.begin(), now.waiters.end(),
                                         [&](const Waiter& x) { return x.owner == w.owner; });
            const bool there = at != now.waiters.end();
            // It has looked, in time, if its place lasts longer now.
            const bool looked = there && at->alive > w.alive;
            if (!there || (looked && (w.channel.empty() || server_.listens(w.channel))))
                silent_.erase(w.owner);
            else if (looked)
                silent_.insert(w.owner);
        }
        lines_[i] = std::move(now);
    }
    return out;
}

}  // namespace holdfast::sim
