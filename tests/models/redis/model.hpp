// What can happen next in a state: the clients run the backend's own code, the server the shipped
// scripts.
#pragma once
#include <algorithm>
#include <memory>

#include "holdfast/spi/config.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/registry.hpp"
#include "protocol/scripts.hpp"
#include "state.hpp"

namespace model {

class Model {
public:
    Model(const Scenario& s, const redis::Scripts& scripts) : scenario_(s), scripts_(scripts) {
        Diagnostics d;
        const auto chosen = parse_url("redis://127.0.0.1", spi::Registry::linked(), d);
        if (!chosen) throw std::runtime_error(d.text());
        shared_ = std::make_unique<redis::Shared>(chosen->settings);
        keys_.assign("", "N");
        redis::sibling(parts_, "N", 'r');
    }

    State start() const {
        State s;
        s.store.now = first_ms;
        s.clients.resize(static_cast<std::size_t>(scenario_.clients));
        if (scenario_.moves > 0)
            for (const std::string& key : {keys_.tombs, parts_}) {
                Value& v = s.store.keys[key];
                v.type = Value::Type::zset;
                v.scores["left"] = static_cast<double>(first_ms - 1);
            }
        return s;
    }

    /// Calls `found(label, next state)` for everything that can happen next.
    template <class Found>
    void successors(const State& s, Found&& found) {
        if (s.store.now < first_ms + scenario_.ticks * tick) {
            State n = s;
            n.store.now += tick;
            n.store.sweep();
            found("a second passes", std::move(n));
        }
        if (scenario_.revoke && !s.revoked && s.store.find("N") != nullptr) {
            State n = s;
            n.revoked = true;
            run(n, scripts_.tell_holders, six(), {"", "0", "0", ""});
            found("an operator revokes", std::move(n));
        }
        for (std::size_t i = 0; i < s.clients.size(); ++i)
            of_client(s, i, found);
    }

    void check(const State& s) const {
        std::uint64_t used = 0, limit = spi::Units::all;
        const auto* lock = s.store.find("N");
        const auto* parts = s.store.find(parts_);
        for (std::size_t i = 0; i < s.clients.size(); ++i) {
            const Client& c = s.clients[i];
            if (c.phase != Phase::held || s.store.now >= c.valid_until) continue;
            const spi::Units of = units_of(i, c);
            used += of.take;
            limit = std::min<std::uint64_t>(limit, of.of);
            const std::string id = owner(i, c);
            const bool alone = lock != nullptr && lock->text == id;
            const bool part = lock != nullptr && parts != nullptr &&
                              lock->text.starts_with(of.permits() ? "hf:p:" : "hf:s:") &&
                              has_part(*parts, id, s) &&
                              (!of.permits() || of.take == 1 || has_part(*parts, id + "#2", s));
            if (of.exclusive() ? !alone : !part && !(c.shared && alone))
                throw Violation("a holder without its key");
        }
        if (used > limit) throw Violation("more than the limit hold");
        const auto* queue = s.store.find(keys_.queue);
        for (const std::string& owner : s.gone) {
            if (lock != nullptr && lock->text == owner)
                throw Violation("held by " + owner + ", which was told that it holds nothing");
            if (parts != nullptr && lock != nullptr && lock->text.starts_with("hf:") &&
                (has_part(*parts, owner, s) || has_part(*parts, owner + "#2", s)))
                throw Violation(owner + " has a part, and was told that it holds nothing");
            if (queue != nullptr && queue->scores.count(owner) != 0)
                throw Violation(owner + " is in line, and was told that it is not");
        }
    }

private:
    using Words = std::vector<std::string>;

    static std::string owner(std::size_t i, const Client& c) {
        return "owner" + std::to_string(i) + std::string(1, static_cast<char>('a' + c.acquisition));
    }
    static bool has_part(const Value& parts, const std::string& member, const State& s) {
        const auto at = parts.scores.find(member);
        return at != parts.scores.end() && at->second >= static_cast<double>(s.store.now);
    }
    /// What it believes that it has, or asks for.
    spi::Units units_of(std::size_t i, const Client& c) const {
        const char kind = scenario_.kind(i);
        if (kind == 's' || c.shared) return {1, spi::Units::all, Mode::shared};
        if (kind == '1' || kind == '2')
            return {static_cast<std::uint32_t>(kind - '0'), 2, Mode::exclusive};
        return {};
    }
    static std::string channel(std::size_t i) { return "hf:c:" + std::to_string(i); }
    Words five() const {
        return {keys_.lock, keys_.state, keys_.queue, keys_.waiters, keys_.tombs};
    }
    Words six() const {
        Words all = five();
        all.push_back(parts_);
        return all;
    }
    /// The client knows the server's clock.
    redis::Shared& shared(const State& s) {
        shared_->clock.sample(s.store.now * 1000, at(s.store.now));
        return *shared_;
    }

    static redis::Reply as_reply(const std::string& text) {
        redis::Reply r;
        r.type = redis::Reply::Type::bulk;
        r.text = text;
        return r;
    }
    /// The client's clock, as operations want it.
    static redis::Operation::Now clock_of(const State& s) {
        static boot_clock::time_point now;
        now = at(s.store.now);
        return [] { return now; };
    }

    static Words words_of(const redis::Command& c) {
        std::string bytes;
        c.encode(bytes);
        Words out;
        std::size_t at = bytes.find("\r\n") + 2;
        while (at < bytes.size()) {
            const auto end = bytes.find("\r\n", at);
            const auto size = std::stoul(bytes.substr(at + 1, end - at - 1));
            out.push_back(bytes.substr(end + 2, size));
            at = end + 2 + size + 2;
        }
        return out;
    }

    /// What a request meets at the server.
    enum class Meets : char { nothing, no_writes, moving_slot };

    static bool has_all(const State& s, const Words& keys) {
        return std::all_of(keys.begin(), keys.end(),
                           [&](const std::string& key) { return s.store.find(key) != nullptr; });
    }

    /// Runs a script at the server; what it publishes is under way to those that listen.
    std::string run(State& s, const redis::Script& script, const Words& keys,
                    const Words& arguments, Meets meets = Meets::nothing) {
        Wire wire;
        wire.read_only = meets == Meets::no_writes;
        if (meets == Meets::moving_slot)
            wire.has_keys = [&](const Words& words) { return has_all(s, keys_of(words)); };
        for (std::size_t i = 0; i < s.clients.size(); ++i)
            if (static_cast<int>(i) != scenario_.elsewhere && s.clients[i].phase != Phase::gone)
                wire.listeners[channel(i)] = 1;
        s.store.sweep();
        const auto answer = lua_.run(script.text(), keys, arguments, s.store, wire);
        for (const auto& [to, text] : wire.published)
            for (std::size_t i = 0; i < s.clients.size(); ++i)
                if (to == channel(i) && listens(s.clients[i])) s.clients[i].mail.push_back(text);
        return answer.at(0);
    }

    Words keys_of_request(const Request& r) const {
        if (r.units) return six();
        if (r.kind == Kind::renew) return {keys_.lock, keys_.state, keys_.tombs};
        return five();
    }

    const redis::Script& script_of(const Request& r) const {
        const auto& one = scripts_;
        switch (r.kind) {
            case Kind::enter:
                return r.units ? one.enter_units : scenario_.many ? one.enter_many : one.enter_one;
            case Kind::leave:
                return r.units ? one.leave_units : scenario_.many ? one.leave_many : one.leave_one;
            default:
                return r.units ? one.renew_units : one.renew;
        }
    }

    std::string execute(State& s, const Request& r, Meets meets = Meets::nothing) {
        return run(s, script_of(r), keys_of_request(r), r.arguments, meets);
    }

    bool has(const State& s, const std::string& owner) const {
        const auto *lock = s.store.find("N"), *parts = s.store.find(parts_);
        if (lock == nullptr) return false;
        return lock->text == owner ||
               (lock->text.starts_with("hf:") && parts != nullptr && has_part(*parts, owner, s));
    }

    std::string execute_while_moving(State& s, const Request& r) {
        const State before = s;
        const std::string reply = execute(s, r, Meets::moving_slot);
        for (std::size_t i = 0; reply.starts_with("E ") && i < s.clients.size(); ++i)
            if (const auto id = owner(i, s.clients[i]); has(before, id) && !has(s, id))
                throw Violation("what was cut short has taken it from " + id);
        return reply;
    }

    spi::Attempt attempt_of(const State& s, std::size_t i, const std::string& id) const {
        const Client& c = s.clients[i];
        spi::Attempt a;
        a.units = units_of(i, c);
        a.name = "N";
        a.owner = id;
        a.ttl = milliseconds(ttl);
        a.queue = true;
        a.sent = at(s.store.now);
        a.deadline = at(s.store.now + tick);
        a.place = std::make_shared<OwnerState>(c.place);
        return a;
    }

    void send(State& s, std::size_t i, Kind kind, redis::Operation& op) {
        redis::Command c;
        const std::string to = channel(i);
        const bool units = op.wants()->keys == 6;
        if (op.wants()->channel) c.add(to);
        op.add_arguments(c);
        Client& client = s.clients[i];
        client.out = true;
        client.answered = false;
        client.request = {kind, units, s.store.now, s.store.now + tick, words_of(c)};
    }

    void believe(State& s, std::size_t i, std::uint64_t token, std::int64_t until) {
        Client& c = s.clients[i];
        const std::string id = owner(i, c);
        const spi::Units of = units_of(i, c);
        if (of.exclusive()) {
            if (token < s.best || (token == s.best && id != s.best_owner))
                throw Violation("the token goes back");
            s.written = token;
        } else if (!of.permits() && token <= s.written) {
            throw Violation("a reader's token is not above that of a writer before it");
        }
        if (token >= s.best) {
            s.best = token;
            s.best_owner = id;
        }
        c.phase = Phase::held;
        c.token = token;
        c.valid_until = until;
    }

    /// Core's part: a grant that is over before it is read is none.
    void granted(State& s, std::size_t i, const spi::Attempt::Granted& g,
                 boot_clock::time_point sent) {
        const auto base = g.base == boot_clock::time_point{} ? sent : g.base;
        const auto until = server(base + g.ttl - spi::drift(g.ttl));
        if (until > s.store.now)
            believe(s, i, g.token.value, until);
        else
            s.clients[i].phase = Phase::asked;
    }

    void leave(State& s, std::size_t i, char how) {
        Client& c = s.clients[i];
        c.phase = Phase::leaving;
        c.how = how;
    }

    /// The answer to what is under way is read.
    void read(State& s, std::size_t i) {
        Client& c = s.clients[i];
        const Request r = c.request;
        const std::string reply = c.reply;
        c.out = c.answered = false;
        c.reply.clear();
        if (r.kind == Kind::enter) {
            const std::string id = owner(i, c);
            auto a = attempt_of(s, i, id);
            a.sent = at(r.sent);
            a.deadline = at(r.deadline);
            redis::Acquire op(shared(s), keys_, a);
            op.answered(as_reply(reply), clock_of(s));
            c.place = *redis::find_state(a.place);
            if (op.wants() != nullptr) {
                c.phase = Phase::asked;
                // With its units, at once.
                if (op.wants()->keys == 6 && !r.units) send(s, i, Kind::enter, op);
            } else if (const auto* g = std::get_if<spi::Attempt::Granted>(&a.outcome))
                granted(s, i, *g, a.sent);
            else if (reply.starts_with("E "))
                ;  // it attempts again
            else if (std::holds_alternative<spi::Attempt::Busy>(a.outcome))
                c.phase = Phase::waiting;
            else
                leave(s, i, 'u');
        } else if (r.kind == Kind::renew) {
            const std::string id = owner(i, c);
            auto h = held_of(s, i, id);
            redis::Renew op(shared(s), keys_, h);
            op.answered(as_reply(reply), clock_of(s));
            c.place = *redis::find_state(h.place);
            if (h.renewal == spi::Held::Renewal::renewed) {
                const auto until = at(r.sent) + milliseconds(ttl) - spi::drift(milliseconds(ttl));
                if (s.store.now < c.valid_until)
                    c.valid_until = std::max(c.valid_until, server(until));
            } else if (op.wants() == nullptr && !reply.starts_with("E ")) {
                leave(s, i, 'a');
            }
        } else if (reply.starts_with("E ")) {
            // It gives back again.
        } else if (reply == "u") {
            send_leave(s, i, true);
        } else if (left(s, i, reply, r.units)) {
            s.gone.push_back(owner(i, c));
            const auto late = c.late;
            const int next = c.acquisition + 1;
            if (next < scenario_.acquisitions) {
                const auto mail = c.mail;
                c = Client();
                c.late = late;
                c.mail = mail;
                c.acquisition = next;
            } else {
                c.phase = Phase::left;
            }
        } else {
            throw Violation("a release is answered: " + reply);
        }
    }

    /// The connection breaks, or the request's time is over: its answer will not be read.
    void lose_answer(State& s, std::size_t i) {
        Client& c = s.clients[i];
        if (!c.answered) c.late.push_back(c.request);
        if (c.request.kind == Kind::enter) {
            const std::string id = owner(i, c);
            auto a = attempt_of(s, i, id);
            a.deadline = at(c.request.deadline);
            redis::Acquire op(shared(s), keys_, a);
            op.missing(errc::unavailable, true);
            c.place = *redis::find_state(a.place);
        }
        c.out = c.answered = false;
        c.reply.clear();
    }

    void look(State& s, std::size_t i) {
        Client& c = s.clients[i];
        const std::string id = owner(i, c);
        auto a = attempt_of(s, i, id);
        if (redis::take_handed(a, shared(s), at(s.store.now))) {
            c.place = *redis::find_state(a.place);
            return granted(s, i, std::get<spi::Attempt::Granted>(a.outcome), a.sent);
        }
        c.place = *redis::find_state(a.place);
        ++c.asks;
        if (c.phase == Phase::idle) c.phase = Phase::asked;
        redis::Acquire op(shared(s), keys_, a);
        send(s, i, Kind::enter, op);
    }

    spi::Held held_of(const State& s, std::size_t i, const std::string& id) const {
        const Client& c = s.clients[i];
        spi::Held h;
        h.units = units_of(i, c);
        h.name = "N";
        h.owner = id;
        h.token.value = c.token;
        h.ttl = milliseconds(ttl);
        h.place = std::make_shared<OwnerState>(c.place);
        h.sent = at(s.store.now);
        h.deadline = at(s.store.now + tick);
        return h;
    }

    void send_renewal(State& s, std::size_t i) {
        Client& c = s.clients[i];
        ++c.renewals;
        const std::string id = owner(i, c);
        auto h = held_of(s, i, id);
        redis::Renew op(shared(s), keys_, h);
        send(s, i, Kind::renew, op);
    }

    /// `units`: it was answered that a mutex's request does not do.
    void send_leave(State& s, std::size_t i, bool units = false) {
        Client& c = s.clients[i];
        if (!units) ++c.leaves;
        with_leave(s, i, units, [&](redis::Leave& op) { send(s, i, Kind::leave, op); });
    }

    /// A withdrawal, or the release of a lease.
    template <class F>
    void with_leave(const State& s, std::size_t i, bool units, F&& f) {
        const Client& c = s.clients[i];
        const std::string id = owner(i, c);
        const auto one = [&](redis::Leave& op) {
            if (units && op.wants()->keys != 6) op.answered(as_reply("u"), clock_of(s));
            f(op);
        };
        const auto a = attempt_of(s, i, id);
        auto h = held_of(s, i, id);
        if (c.how == 'a') h.outcome = Outcome::abandoned;
        if (c.how == 'u') {
            redis::Leave op(shared(s), keys_, a, at(s.store.now));
            one(op);
        } else {
            redis::Leave op(shared(s), keys_, h, at(s.store.now));
            one(op);
        }
    }

    bool left(const State& s, std::size_t i, const std::string& reply, bool units) {
        ReleaseResult result{};
        with_leave(s, i, units, [&](redis::Leave& op) {
            op.answered(as_reply(reply), clock_of(s));
            result = op.result();
        });
        return result != ReleaseResult::unreachable;
    }

    template <class Found>
    void of_client(const State& s, std::size_t i, Found& found) {
        const Client& c = s.clients[i];
        const std::string who = std::string("client ") + std::to_string(i) + ": ";
        const auto then = [&](const std::string& what, auto&& change) {
            State n = s;
            change(n);
            found(who + what, std::move(n));
        };
        for (std::size_t k = 0; k < c.late.size(); ++k)
            then("a late request arrives", [&](State& n) {
                const Request r = n.clients[i].late[k];
                n.clients[i].late.erase(n.clients[i].late.begin() + static_cast<std::ptrdiff_t>(k));
                execute(n, r);
            });
        if (c.phase == Phase::gone) return;
        for (std::size_t k = 0; k < c.mail.size(); ++k)
            then("a message arrives: " + c.mail[k], [&](State& n) {
                Client& to = n.clients[i];
                const std::string text = to.mail[k];
                to.mail.erase(to.mail.begin() + static_cast<std::ptrdiff_t>(k));
                std::string_view rest = text;
                const auto whom = redis::word(rest);
                const auto number = redis::number(redis::word(rest));
                const auto told = redis::word(rest);
                if (number > 0 && whom == owner(i, to) &&
                    (to.phase == Phase::asked || to.phase == Phase::waiting))
                    redis::hear(to.place, static_cast<std::uint64_t>(number), told, shared(n),
                                at(n.store.now));
            });
        if (c.out && !c.answered)
            then("its request arrives", [&](State& n) {
                Client& asks = n.clients[i];
                asks.answered = true;
                asks.reply = execute(n, asks.request);
            });
        if (c.out && !c.answered && c.request.kind == Kind::enter &&
            s.refusals < scenario_.refusals)
            then("its request arrives where no write is taken", [&](State& n) {
                Client& asks = n.clients[i];
                ++n.refusals;
                asks.answered = true;
                asks.reply = execute(n, asks.request, Meets::no_writes);
            });
        // Where a key is not there nothing is done, and it goes again.
        if (c.out && !c.answered && s.moves < scenario_.moves &&
            has_all(s, keys_of_request(c.request)))
            then("its request arrives while the slot is on its way", [&](State& n) {
                Client& asks = n.clients[i];
                ++n.moves;
                asks.answered = true;
                asks.reply = execute_while_moving(n, asks.request);
            });
        if (c.out && c.answered) then("reads " + c.reply, [&](State& n) { read(n, i); });
        if (c.out && c.breaks < scenario_.breaks)
            then("its connection breaks", [&](State& n) {
                ++n.clients[i].breaks;
                lose_answer(n, i);
            });
        const bool wants = c.phase == Phase::asked || c.phase == Phase::waiting;
        if ((c.phase == Phase::idle || wants) && !c.out &&
            (c.asks < scenario_.asks || c.place.handed || (c.phase == Phase::asked && c.asks == 0)))
            then("looks", [&](State& n) { look(n, i); });
        if (wants && !c.out && (scenario_.cancel || c.asks >= scenario_.asks))
            then("leaves", [&](State& n) { leave(n, i, 'u'); });
        if (c.phase == Phase::held) {
            if (!c.out && c.renewals < scenario_.renewals && s.store.now < c.valid_until)
                then("renews", [&](State& n) { send_renewal(n, i); });
            if (scenario_.kind(i) == 'd' && !c.shared && s.store.now < c.valid_until)
                then("downgrades", [&](State& n) {
                    n.clients[i].shared = true;
                    if (!c.out) send_renewal(n, i);
                });
            const auto end = [&](State& n, char how) {
                if (n.clients[i].out) lose_answer(n, i);
                leave(n, i, how);
            };
            if (s.store.now < c.valid_until)
                then("releases", [&](State& n) { end(n, 'r'); });
            else
                then("is told of the loss", [&](State& n) { end(n, 'a'); });
        }
        if (scenario_.crash && c.phase != Phase::idle && c.phase != Phase::left)
            then("crashes", [&](State& n) {
                Client& dies = n.clients[i];
                if (dies.out && !dies.answered) dies.late.push_back(dies.request);
                dies.out = dies.answered = false;
                dies.reply.clear();
                dies.mail.clear();
                dies.phase = Phase::gone;
            });
        if (c.phase == Phase::leaving && !c.out && c.leaves <= scenario_.breaks + scenario_.moves)
            then("gives back", [&](State& n) { send_leave(n, i); });
    }

    const Scenario& scenario_;
    const redis::Scripts& scripts_;
    std::unique_ptr<redis::Shared> shared_;
    redis::Keys keys_;
    std::string parts_;
    Lua lua_;
};

}  // namespace model
