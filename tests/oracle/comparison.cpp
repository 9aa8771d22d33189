#include "comparison.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "holdfast/spi/owner.hpp"
#include "tokens.hpp"

namespace oracle {
namespace {

using Kind = Operation::Kind;
using hf::boot_clock;
using hf::Capability;
using namespace std::chrono_literals;

/// Nothing ends so close to a step, since the clocks of client and server are read one after the
/// other.
constexpr NameState::Time shortest_edge = 250'000;

constexpr NameState::Time often = 1'100'000;

NameState::Time in_us(boot_clock::time_point t) {
    return std::chrono::floor<std::chrono::microseconds>(t.time_since_epoch()).count();
}

enum class Phase : std::uint8_t { fresh, waits, holds, ended };

struct Client {
    Acquisition real;
    Phase phase = Phase::ended;
    NameState::Time came = 0;   ///< since when it waits
    NameState::Time asked = 0;  ///< when it asked last
    std::int64_t token = 0;     ///< by the rules
    bool downgraded = false;
};

class Comparison {
public:
    Comparison(const std::string& name, Ground& ground, const suite::Facts& facts,
               const std::function<void(hf::milliseconds)>& pass, Tally& tally)
        : name_(name),
          ground_(ground),
          facts_(facts),
          pass_(pass),
          tally_(tally),
          can_(ground.capabilities()),
          rules_(facts, can_),
          tokens_(facts) {}

    /// True: both said the same, in `rules` and `backend`.
    bool step(const Operation& o) {
        rules.clear();
        backend.clear();
        const bool renews = o.kind == Kind::renew || o.kind == Kind::downgrade;
        edge_ = shortest_edge + (renews ? spi::to_us(facts_.renews_within) : 0);
        pass(o.time);
        try {
            if (!notified_ask()) return false;
            play(o, client_[static_cast<std::size_t>(o.client)]);
            if (rules == backend && !notified_ask()) return false;
        } catch (const Refused& why) {
            backend = why.what();
        }
        const auto took = std::chrono::duration_cast<hf::milliseconds>(boot_clock::now() - begun_);
        if (hf::milliseconds(edge_ / 1000) < took)
            throw Void("it took " + std::to_string(took.count()) + " ms: " + o.text());
        ++tally_.steps;
        return rules == backend;
    }

    std::string rules, backend;

private:
    void play(const Operation& o, Client& c) {
        switch (o.kind) {
            case Kind::begin:
                begin(o, c);
                break;
            case Kind::attempt:
                if (over(c) || (c.downgraded && !facts_.asks_after_downgrade)) begin(o, c);
                if (c.phase == Phase::holds && facts_.repeats_anew) take_back(o.client, c);
                // A client may answer one that asks more often by what it has just heard.
                if (c.phase != Phase::holds && c.real.asked_before &&
                    rules_.name().now - c.asked < often)
                    pass(hf::milliseconds((often - (rules_.name().now - c.asked)) / 1000 + 1));
                if (c.phase == Phase::waits && facts_.told_within.count() > 0)
                    pass(facts_.told_within);
                if (!notified_ask()) break;
                c.asked = rules_.name().now;
                attempt(o, c);
                break;
            case Kind::withdraw:
                if (c.phase == Phase::waits || c.phase == Phase::holds) withdraw(o.client, c);
                break;
            case Kind::renew:
            case Kind::downgrade:
                if (c.phase == Phase::holds) renew(o, c);
                break;
            case Kind::release:
                if (c.phase == Phase::holds || (c.phase == Phase::ended && c.token != 0))
                    release(o, c);
                break;
            case Kind::break_lock:
                break_lock(o, c);
                break;
            case Kind::request_release:
                request_release(o, c);
                break;
            case Kind::inspect:
                inspect();
                break;
            case Kind::pass:
            case Kind::count_:
                break;
        }
    }

    /// Waiters that were notified ask again, as long as there are any. False: a difference, also
    /// where one was let in and is not notified.
    bool notified_ask() {
        if (!facts_.asks_when_notified) return true;
        for (int round = 0; round < 3 * clients; ++round) {
            const auto due = [&](const Client& c) {
                return c.phase == Phase::waits &&
                       (ground_.was_woken(c.real.owner) || rules_.has_not_heard(c.real.owner));
            };
            if (std::none_of(std::begin(client_), std::end(client_), due)) return true;
            pass(facts_.told_within);
            const auto one = std::find_if(
                std::begin(client_), std::end(client_),
                [&](const Client& c) { return due(c) && ground_.was_woken(c.real.owner); });
            if (one == std::end(client_)) {
                rules = "a waiter is notified";
                backend = "none is";
                return false;
            }
            Operation o;
            o.client = static_cast<int>(one - std::begin(client_));
            attempt(o, *one);
            if (rules != backend) return false;
        }
        rules = "waiters are notified, and then no more";
        backend = "they are notified without end";
        return false;
    }

    void pass(hf::milliseconds time) {
        if (time.count() > 0) pass_(time);
        while (close_to_an_edge(in_us(boot_clock::now())))
            pass_(hf::milliseconds(2 * edge_ / 1000 + 1));
        rules_.expire(in_us(boot_clock::now()));
        begun_ = boot_clock::now();
    }
    bool close_to_an_edge(NameState::Time now) {
        const auto close = [&](NameState::Time t) { return std::abs(t - now) < edge_; };
        const auto off = edge_ + spi::to_us(facts_.tickets_within);
        for (const Client& c : client_) {
            const auto after = rules_.name().place_after;
            const auto waited = now - c.came;
            if (c.came != 0 && after > 0 && std::abs(waited - after) < off) return true;
            // One that came now might stand before it.
            if (c.came != 0 && off > edge_ && waited < off) return true;
            const auto* own = rules_.find(c.real.owner);
            if (own != nullptr && close(own->since + spi::to_us(c.real.min_hold))) return true;
        }
        return rules_.close_to_an_edge(now, edge_);
    }

    /// A grant that has ended is not asked for again.
    bool over(const Client& c) {
        if (c.phase != Phase::holds) return c.phase == Phase::ended;
        const auto* own = rules_.find(c.real.owner);
        return own == nullptr || own->revoked || own->valid <= rules_.name().now;
    }

    /// Core leaves no acquisition that waits; a holder may die.
    void begin(const Operation& o, Client& c) {
        if (c.phase == Phase::waits) withdraw(o.client, c);
        c = Client();
        c.phase = Phase::fresh;
        c.real.owner = spi::make_owner("oracle");
        slots_[c.real.owner] = o.client;
        c.real.queue = o.queue;
        c.real.units = o.units;
        c.real.ttl = o.ttl;
        c.real.lock_delay = o.lock_delay;
        c.real.min_hold = o.min_hold;
    }
    NameState::Request request(const Client& c) const {
        return {.owner = c.real.owner,
                .units = c.real.units,
                .ttl = c.real.ttl,
                .lock_delay = c.real.lock_delay,
                .min_hold = c.real.min_hold,
                .token = c.token};
    }

    void attempt(const Operation& o, Client& c) {
        for (int again = 0;; ++again) {
            const Expected before = rules_;
            auto r = request(c);
            const bool queue = c.real.queue;
            r.queue = queue;
            if ((queue || facts_.marks) && c.came == 0) c.came = rules_.name().now;
            r.ticket = c.came;
            const auto a = ground_.attempt(o.client, name_, c.real, o.lane && !queue);
            if (rules_.starts_over(r.owner) && unavailable(a) && again < 3) {
                c.came = 0;
                pass(1ms);
                continue;
            }
            const bool leaves = rules_.waits_with_other_limit(r);
            const auto made = rules_.attempt(r, heard(a));
            backend = said(a, made);
            rules = said(made);
            const auto* busy = std::get_if<spi::Attempt::Busy>(&a.outcome);
            const bool granted = made.kind == NameState::Attempted::Kind::granted;
            // A waiter may be told later, and attempts again when it is told, or after a while. One
            // that met somebody just at the name may have been left out: it has no place, either.
            // It polls, unlike the others; where all of them poll, none was left out.
            const bool left_out =
                busy != nullptr && busy->polling && can_.has(Capability::notified);
            const bool later = busy != nullptr && granted && queue;
            if (facts_.grants_late && (left_out || later) && again < (left_out ? 100 : 3)) {
                tally_.late += granted;
                rules_ = before;
                if (left_out)
                    ground_.settle();
                else if (!ground_.woken(c.real.owner))
                    pass(busy->look_within);
                pass(0ms);
                continue;
            }
            if (granted) {
                c.phase = Phase::holds;
                c.token = made.token;
                ++tally_.grants;
                if (facts_.permits_in_turn && c.real.units.permits()) pass_(20ms);
            } else if (made.broken) {
                withdraw(o.client, c);  // as core leaves the queue
            } else if (made.kind == NameState::Attempted::Kind::of_another_kind) {
                c.phase = Phase::ended;
                ++tally_.refused;
            } else if (leaves && queue) {
                withdraw(o.client, c);
            } else if (c.phase != Phase::holds) {
                c.phase = queue ? Phase::waits : c.phase;
            }
            return;
        }
    }
    /// Core asks again.
    static bool unavailable(const spi::Attempt& a) {
        const auto* f = std::get_if<spi::Attempt::Failed>(&a.outcome);
        return f != nullptr && f->why == hf::errc::unavailable;
    }
    static Expected::Heard heard(const spi::Attempt& a) {
        const auto* g = std::get_if<spi::Attempt::Granted>(&a.outcome);
        if (g == nullptr || g->base == boot_clock::time_point()) return {};
        return {.before = g->base < a.sent, .base = in_us(g->base)};
    }
    static std::string said(const Expected::Attempted& made) {
        if (made.broken) return "broken";
        switch (made.kind) {
            case NameState::Attempted::Kind::granted:
                return "granted, before it " + std::to_string(static_cast<int>(made.previous));
            case NameState::Attempted::Kind::busy:
                return "busy";
            case NameState::Attempted::Kind::of_another_kind:
                return "of another kind";
        }
        return {};
    }
    std::string said(const spi::Attempt& a, const NameState::Attempted& made) {
        if (std::holds_alternative<spi::Attempt::Busy>(a.outcome)) return "busy";
        if (const auto* f = std::get_if<spi::Attempt::Failed>(&a.outcome)) {
            if (f->why == hf::errc::revoked) return "broken";
            if (f->why == hf::errc::kind_mismatch) return "of another kind";
            return "failed: " + f->why.message() + " " + a.detail;
        }
        const auto* grant = std::get_if<spi::Attempt::Granted>(&a.outcome);
        if (grant == nullptr) return "no answer: " + a.detail;
        const auto& g = *grant;
        std::string out = "granted";
        const auto previous = can_.has(Capability::previous_holder) ? g.previous : made.previous;
        out += ", before it " + std::to_string(static_cast<int>(previous));
        return out + tokens_.wrong(made.token, {g.token.value, a.units.mode == hf::Mode::shared});
    }

    void take_back(int client, Client& c) {
        rules_.withdraw(c.real.owner);
        ground_.withdraw(client, name_, c.real);
        // A mark is taken back behind the answer.
        if (facts_.marks) pass_(20ms);
    }
    void withdraw(int client, Client& c) {
        take_back(client, c);
        c.phase = Phase::ended;
        c.token = 0;
    }

    void renew(const Operation& o, Client& c) {
        if (o.kind == Kind::downgrade && c.real.units.exclusive()) {
            c.real.units = {1, spi::Units::all, hf::Mode::shared};
            c.downgraded = true;
        }
        const auto h = ground_.renew(o.client, name_, c.real);
        const auto made =
            rules_.renew(request(c), {.base = h.renewed_base ? in_us(*h.renewed_base) : 0});
        rules = made.why ? made.why.message() : made.asked ? "renewed, asked" : "renewed";
        const bool lost = h.renewal == spi::Held::Renewal::lost;
        backend = lost ? reason(h.renewal_error) : h.asked ? "renewed, asked" : "renewed";
        tally_.lost += lost;
    }

    /// Without the backend's own words for it.
    static std::string reason(const hf::error_code& why) {
        for (const auto known : {hf::errc::lost, hf::errc::revoked})
            if (why == known) return make_error_code(known).message();
        return why.message();
    }

    void release(const Operation& o, Client& c) {
        auto r = request(c);
        if (o.abandon) r.outcome = hf::Outcome::abandoned;
        const auto made = rules_.release(r);
        const auto h = ground_.release(o.client, name_, c.real, o.abandon, o.lane);
        rules = hf::to_string(made.result);
        backend = hf::to_string(h.released);
        c.phase = Phase::ended;
    }

    std::string whom(const hf::Holder& h) const {
        const auto at = slots_.find(h.owner);
        return at == slots_.end() ? "somebody" : "client " + std::to_string(at->second);
    }
    std::string text(const hf::Holder& h, bool holds) const {
        std::string out = whom(h) + (h.mode == hf::Mode::shared ? " shared" : "");
        out += " x" + std::to_string(h.permits) + (h.revoked ? " revoked" : "");
        if (holds && h.asked) out += " asked";
        return out + "; ";
    }
    std::string joined(std::string out, std::vector<std::string> each) const {
        if (!facts_.lists_in_order) std::sort(each.begin(), each.end());
        for (const std::string& one : each)
            out += one;
        return out;
    }
    hf::HolderFilter which(const Operation& o, const Client& c) const {
        hf::HolderFilter f;
        if (!o.all && !c.real.owner.empty()) f.owner = c.real.owner;
        return f;
    }

    void break_lock(const Operation& o, const Client& c) {
        const auto filter = which(o, c);
        const hf::BreakOptions options{.now = o.now, .owner = filter.owner};
        const auto list = [&](const std::vector<hf::Broken>& all) {
            std::vector<std::string> each;
            for (const hf::Broken& b : all)
                each.push_back(text(b.holder, false) + (b.free_in.count() > 0 ? "later " : "now "));
            return joined("broken: ", std::move(each));
        };
        const auto what = o.now ? hf::spi::Tell::gone : hf::spi::Tell::revoked;
        const auto made = rules_.tell(filter, what).broken(what);
        const auto real = ground_.break_lock(name_, options);
        rules = list(made);
        backend = real ? list(*real) : said(real.error().why);
    }
    void request_release(const Operation& o, const Client& c) {
        const auto list = [&](const std::vector<hf::Holder>& all) {
            std::vector<std::string> each;
            for (const hf::Holder& h : all)
                each.push_back(text(h, false));
            return joined("asked: ", std::move(each));
        };
        const auto made = rules_.tell(which(o, c), hf::spi::Tell::asked).asked();
        const auto real = ground_.request_release(name_, which(o, c));
        rules = list(made);
        backend = real ? list(*real) : said(real.error().why, "asked: ");
    }
    static std::string said(const hf::error_code& why, const char* none = "broken: ") {
        if (why == hf::errc::not_held) return none;
        throw Refused(why.message());
    }

    void inspect() {
        const auto list = [&](const hf::Inspection& found) {
            std::string out = found.holders.empty() && found.waiters.empty() && !found.closed_for
                                  ? ""
                                  : std::to_string(static_cast<int>(found.kind)) + " ";
            if (found.kind == hf::Kind::semaphore) out += "of " + std::to_string(found.limit) + " ";
            std::set<std::string> holders;
            for (const hf::Holder& h : found.holders)
                holders.insert(text(h, true));
            for (const std::string& h : holders)
                out += h;
            out += "waiting: ";
            for (const hf::Holder& h : found.waiters)
                out += text(h, false);
            return out + (found.closed_for ? "closed" : "");
        };
        const auto real = ground_.inspect(name_);
        auto made = rules_.name().survey();
        if (facts_.marks) made.waiters.clear();
        rules = list(std::move(made).inspection(name_));
        backend = list(real);
    }

    const std::string& name_;
    Ground& ground_;
    const suite::Facts& facts_;
    const std::function<void(hf::milliseconds)>& pass_;
    Tally& tally_;
    const hf::Capabilities can_;
    Expected rules_;
    Client client_[clients];
    std::map<std::string, int, std::less<>> slots_;  ///< of all owners so far
    Tokens tokens_;
    NameState::Time edge_ = shortest_edge;  ///< of the step
    boot_clock::time_point begun_;          ///< of the answers that are compared
};

}  // namespace

std::optional<Difference> compare(const std::vector<Operation>& all, const std::string& name,
                                  Ground& ground, const suite::Facts& facts,
                                  const std::function<void(hf::milliseconds)>& pass, Tally& tally) {
    Comparison both(name, ground, facts, pass, tally);
    for (std::size_t i = 0; i < all.size(); ++i)
        if (!both.step(all[i])) return Difference{i, both.rules, both.backend};
    return std::nullopt;
}

}  // namespace oracle
