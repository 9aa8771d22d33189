// Operations without a server: what each answer and each silence comes to, and what is asked next.
#include "operations.hpp"

#include "bare.hpp"
#include "errors.hpp"
#include "shown.hpp"

namespace etcd_operations {

using namespace holdfast::etcd;
using namespace holdfast::test;
using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::error_code;
using holdfast::ReleaseResult;
using holdfast::spi::Attempt;
using holdfast::spi::Held;
using Needs = Operation::Needs;
using Step = Operation::Step;

namespace {

RequestInfo at(std::int64_t revision) {
    return {revision, false, false, false, false, holdfast::boot_clock::now(), {}};
}
const RequestInfo unanswered{0, true, true, false, false, {}, "silence"};
Result found(std::vector<KeyValue> all) {
    return {std::move(all), false, false, {}};
}
Result done(bool succeeded = true, std::vector<Result> inner = {}) {
    return {{}, false, succeeded, std::move(inner)};
}
/// The key of our owner, since revision 7, with this value.
Result ours(const std::string& value = "hf1 me") {
    return found({{"/holdfast/a/me", value, 7, 7, 5}});
}
const Result foreign = found({{"/holdfast/a", "x", 2, 2, 0}});
const Result marker = found({{"/holdfast/a", std::string(permits_marker), 4, 4, 0}});

/// One client's side of the lock "a", with an attempt at it. Nothing runs: its loop is not started.
struct Desk {
    explicit Desk(bool queue = false, const std::string& query = "ttl=10s")
        : shared(std::make_shared<Shared>(settings_of("etcd://127.0.0.1?" + query),
                                          holdfast::spi::Context{context.get_executor(), events})),
          queues(std::make_shared<QueueCache>(shared, std::make_shared<Members>(shared))),
          place(make_owner_state(shared->options, a)) {
        a.queue = queue;
        a.place = place;
    }
    Acquire acquire() { return {a, *queues}; }
    /// It has its lease, and its request was sent.
    std::string asks(Operation& o, Step step, Needs needs) const {
        CHECK(o.wants() == step);
        CHECK(o.needs() == needs);
        if (needs != Needs::nothing) o.leased(lease);
        rpc::TxnRequest sent;
        o.request(Transaction(sent));
        return shown(sent);
    }
    void answers(Operation&& o, Step step, Needs needs, const Result& r) const {
        asks(o, step, needs);
        o.answered(r, at(9));
        CHECK(o.wants() == Step::over);
    }
    /// Its key is there, behind another one of revision 3.
    void stand_in_line() {
        Acquire op = acquire();
        asks(op, Step::enter, Needs::young);
        CHECK(op.lists());
        const KeyValue other{"/holdfast/a/other", "hf1 other", 3, 3, 1};
        op.answered(done(false, {done(), found({other, ours().found.front()})}), at(7));
        CHECK(op.wants() == Step::adopt);
        lease.id = 6;  // that of waiters
    }
    error_code why() const {
        if (const auto* f = std::get_if<Attempt::Failed>(&a.outcome)) return f->why;
        return std::get<Attempt::NoAnswer>(a.outcome).why;
    }
    bool in_doubt() const { return std::holds_alternative<Attempt::NoAnswer>(a.outcome); }
    const Attempt::Busy& busy() const { return std::get<Attempt::Busy>(a.outcome); }

    boost::asio::io_context context;
    NoEvents events;
    std::shared_ptr<Shared> shared;
    std::shared_ptr<QueueCache> queues;
    Attempt a = attempt_at("a", "me");
    OwnerStatePtr place;
    Lease lease{5, a.sent, 10s};
};

}  // namespace

TEST_CASE("operations: each answer to a request that makes a key") {
    struct Row {
        Result answer;
        error_code why;
        bool doubt = false, queue = false;
    };
    const Row rows[] = {
        {done(false, {{}, foreign}), make(Error::other_kind)},
        {done(false), make(Error::protocol), true},
        {done(false, {{}, {}, {}}), make(Error::protocol), true},
        {done(false, {done(false, {{}, {}}), {}}), make_error_code(errc::cancelled), false, true}};
    for (const Row& row : rows) {
        Desk desk(row.queue);
        desk.answers(desk.acquire(), Step::enter, Needs::young, row.answer);
        CHECK(desk.why() == row.why);
        CHECK(desk.in_doubt() == row.doubt);
    }
    Desk desk;
    desk.answers(desk.acquire(), Step::enter, Needs::young, done(false, {{}, {}}));
    CHECK(desk.busy().polling);
    desk.a.lock_delay = 3s;
    desk.lease.ttl = 13s;
    CHECK(desk.acquire().alone());
    CHECK(desk.acquire().ttl == 13s);
    desk.answers(desk.acquire(), Step::enter, Needs::young, done());
    const auto& granted = std::get<Attempt::Granted>(desk.a.outcome);
    CHECK(granted.token.value == 9);
    CHECK(granted.ttl == 10s);
    CHECK(granted.base == desk.lease.base);
    CHECK(desk.acquire().wants() == Step::take);  // it was granted too late for core
}

TEST_CASE("operations: a marker without owners is removed once, if it is as it was") {
    for (const bool removed : {true, false}) {
        Desk desk;
        Acquire op = desk.acquire();
        desk.asks(op, Step::enter, Needs::young);
        op.answered(done(false, {{}, marker}), at(7));
        CHECK(desk.asks(op, Step::clear, Needs::nothing).find("= 4") != std::string::npos);
        op.answered(done(removed, {marker}), at(8));
        if (removed) {
            desk.asks(op, Step::enter, Needs::young);
            op.answered(done(false, {{}, marker}), at(9));
        }
        CHECK(op.wants() == Step::over);
        CHECK(desk.why() == errc::kind_mismatch);
    }
}

TEST_CASE("operations: no answer to an acquisition, and what is left of it") {
    for (const bool late : {false, true}) {
        Desk desk;
        Acquire op = desk.acquire();
        desk.asks(op, Step::enter, Needs::young);
        op.missing(make(Error::overloaded), late ? unanswered : RequestInfo());
        CHECK(op.wants() == Step::over);
        CHECK(desk.why() == make(Error::overloaded));
        CHECK(desk.in_doubt() == late);
        if (!late) CHECK(std::get<Attempt::Failed>(desk.a.outcome).server_alive);
        // Without a lease nothing was sent; what was sent before is as doubtful as it was.
        desk.acquire().missing(make(Error::no_answer), RequestInfo());
        CHECK(desk.in_doubt() == late);
        Leave leaving(desk.a, *desk.queues);
        CHECK((leaving.wants() == Step::leave) == late);
        if (!late) continue;
        const std::string tombstone = "put(/holdfast/%gone/me";
        CHECK(desk.asks(leaving, Step::leave, Needs::young).find(tombstone) != std::string::npos);
        leaving.missing(make(Error::closed), unanswered);
        CHECK(desk.a.withdrawal == make(Error::closed));
        desk.answers(Leave(desk.a, *desk.queues), Step::leave, Needs::young, done());
        CHECK_FALSE(desk.a.withdrawal);
        CHECK(desk.a.place == nullptr);
    }
}

TEST_CASE("operations: one that was not sent for want of time is asked for again") {
    Desk desk;
    Acquire op = desk.acquire();
    RequestInfo went;
    went.unsent = true;
    op.missing(make(Error::no_answer), went);
    CHECK_FALSE(desk.in_doubt());
    CHECK(std::get<Attempt::Failed>(desk.a.outcome).server_alive);
}

TEST_CASE("operations: what was made in vain is deleted at once") {
    const bool answered = GENERATE(false, true), full = GENERATE(false, true);
    Desk desk(!full);
    if (!full) desk.stand_in_line();
    desk.a.queue = false;
    Acquire op = desk.acquire();
    if (full) {
        RequestInfo went;
        went.doubt = true;
        desk.asks(op, Step::enter, Needs::young);
        op.missing(make(Error::no_space), went);
    }
    desk.asks(op, Step::leave, Needs::nothing);
    if (answered)
        op.answered(done(), at(9));
    else
        op.missing(make(Error::closed), unanswered);
    CHECK(desk.in_doubt() != answered);
    if (full || !answered) CHECK(desk.why() == make(full ? Error::no_space : Error::closed));
    if (!full && answered) CHECK(desk.busy().polling);
}

TEST_CASE("operations: a waiter is attached to the waiters' lease, checks, and takes what fits") {
    Desk desk(true);
    desk.stand_in_line();
    desk.answers(desk.acquire(), Step::adopt, Needs::waiting, done());
    CHECK(desk.busy().look_within == 1s);
    CHECK(desk.place->lease == 6);
    Acquire attached = desk.acquire();
    attached.leased(desk.lease);
    CHECK(attached.wants() == Step::over);
    desk.a.sent += 20s;  // the line is due to be checked
    for (const bool there : {true, false}) {
        desk.place->checked = {};
        Acquire looks = desk.acquire();
        desk.asks(looks, Step::check, Needs::nothing);
        looks.answered(done(there), at(9));
        CHECK(looks.wants() == (there ? Step::adopt : Step::list));
        if (there) continue;
        looks.answered(ours(), at(9));
        desk.asks(looks, Step::take, Needs::young);
        looks.answered(done(), at(10));
        CHECK(std::get<Attempt::Granted>(desk.a.outcome).token.value == 7);
    }
    // It takes it once more, and is told what it finds.
    const std::pair<Result, error_code> rows[] = {
        {done(false, {ours("hf1! me"), {}}), make_error_code(errc::revoked)},
        {done(false, {ours(), foreign}), make(Error::other_kind)},
        {done(false, {{}, {}}), make_error_code(errc::unavailable)}};
    for (const auto& [answer, why] : rows) {
        desk.answers(desk.acquire(), Step::take, Needs::young, answer);
        CHECK(desk.why() == why);
    }
    CHECK(desk.acquire().wants() == Step::enter);
}

TEST_CASE("operations: where somebody waits, the next one looks at no key of the line") {
    Desk desk(true);
    desk.stand_in_line();
    desk.answers(desk.acquire(), Step::adopt, Needs::waiting, done());
    for (const bool reader : {false, true}) {
        Attempt next = attempt_at("a", "next");
        next.queue = true;
        if (reader) next.units = {1, holdfast::spi::Units::all, holdfast::Mode::shared};
        next.place = make_owner_state(desk.shared->options, next);
        Acquire op(next, *desk.queues);
        const std::string sent = desk.asks(op, Step::enter, Needs::waiting);
        INFO(sent);
        CHECK(sent.find("..") == sent.npos);
        CHECK(sent.find(" next, lease 6)") != sent.npos);
        CHECK_FALSE(op.lists());
        op.answered(done(), at(12));
        CHECK(op.wants() == Step::adopt);
        op.leased(desk.lease);  // its key is attached to it already
        CHECK(op.wants() == Step::over);
        // Its key was there, and it has left.
        Acquire again(next, *desk.queues);
        CHECK(again.wants() == Step::adopt);
        Attempt gone = attempt_at("a", "gone");
        gone.queue = true;
        gone.place = make_owner_state(desk.shared->options, gone);
        Acquire late(gone, *desk.queues);
        desk.asks(late, Step::enter, Needs::waiting);
        late.answered(done(false, {{}, {}}), at(13));
        CHECK(late.wants() == Step::over);
        CHECK(std::get<Attempt::Failed>(gone.outcome).why == errc::cancelled);
    }
    // Permits are compared with those of another limit.
    Attempt permits = attempt_at("a", "permits");
    permits.queue = true;
    permits.units = {1, 5, {}};
    permits.place = make_owner_state(desk.shared->options, permits);
    Acquire op(permits, *desk.queues);
    CHECK(desk.asks(op, Step::enter, Needs::young).find("..") != std::string::npos);
}

TEST_CASE("operations: a request that may make a key on the waiters' lease is never forgotten") {
    Desk desk(true);
    desk.stand_in_line();
    desk.answers(desk.acquire(), Step::adopt, Needs::waiting, done());
    Attempt next = attempt_at("a", "next");
    next.queue = true;
    next.lock_delay = 3s;
    next.place = make_owner_state(desk.shared->options, next);
    const auto asks = [&] {
        Acquire op(next, *desk.queues);
        const std::string sent = desk.asks(op, Step::enter, Needs::waiting);
        INFO(sent);
        CHECK(sent.find(", hf1 next, lease 6)") != sent.npos);  // no lock_delay
        CHECK(sent.find("..") == sent.npos);
        op.missing(make(Error::no_answer), unanswered);
    };
    asks();
    // Nobody waits any more, so another one would be granted at once. This one asks for the same
    // again.
    desk.answers(Leave(desk.a, *desk.queues), Step::leave, Needs::nothing, done());
    CHECK_FALSE(desk.queues->crowded("/holdfast/a/"));
    asks();
    CHECK_FALSE(desk.queues->drop_abandoned());
    auto leaving = std::make_unique<Leave>(next, *desk.queues);
    CHECK(desk.asks(*leaving, Step::leave, Needs::waiting).find("/%gone/next, , lease 6") !=
          std::string::npos);
    SECTION("it is known to have left") {
        leaving->answered(done(), at(14));
        CHECK_FALSE(desk.queues->drop_abandoned());
    }
    SECTION("core has given up: the lease must not be kept alive") {
        leaving->missing(make(Error::closed), unanswered);
        CHECK_FALSE(desk.queues->drop_abandoned());
        leaving.reset();
        next.place.reset();
        CHECK(desk.queues->drop_abandoned());
        CHECK_FALSE(desk.queues->drop_abandoned());
    }
}

TEST_CASE("operations: a key names its lock_delay while its lease lasts for that, too") {
    Desk desk(true);
    desk.a.lock_delay = 3s;
    desk.a.place = desk.place = make_owner_state(desk.shared->options, desk.a);
    const std::string key = desk.place->key, delayed = "hf1d3000 me";
    const auto has = [](const std::string& sent, const std::string& part) {
        return sent.find(part) != sent.npos;
    };
    desk.stand_in_line();
    Acquire waits = desk.acquire();
    CHECK(has(desk.asks(waits, Step::adopt, Needs::waiting), "put(" + key + ", hf1 me, lease 6)"));
    waits.answered(done(), at(8));
    desk.a.sent += 20s;
    Acquire takes = desk.acquire();
    desk.asks(takes, Step::check, Needs::nothing);
    takes.answered(done(false), at(9));
    takes.answered(ours(), at(9));
    CHECK(has(desk.asks(takes, Step::take, Needs::young),
              "put(" + key + ", " + delayed + ", lease 6)"));
    takes.answered(done(), at(10));
    Held h = held_of(desk.a);
    Renew renews(h);
    const auto sent = desk.asks(renews, Step::renew, Needs::young);
    CHECK(has(sent, "value(" + key + ") = " + delayed));
    CHECK(has(sent, "put(" + key + ", the same value, lease 6)"));
}

TEST_CASE("operations: a waiter whose key is gone starts over") {
    Desk desk(true);
    desk.stand_in_line();
    desk.answers(desk.acquire(), Step::adopt, Needs::waiting, done(false, {{}}));
    CHECK(desk.busy().look_within == 1ms);
    CHECK(desk.acquire().wants() == Step::over);
    CHECK(desk.why() == errc::unavailable);
    CHECK(desk.acquire().wants() == Step::enter);
}

TEST_CASE("operations: each answer to a renewal") {
    struct Row {
        std::vector<Result> answers;
        Held::Renewal is;
        error_code why;
    };
    const Result asked = done(false, {ours("hf1? me")});
    const Row rows[] = {
        {{asked, done()}, Held::Renewal::renewed, {}},
        {{asked, asked, asked}, Held::Renewal::unknown, make(Error::refused)},
        {{done(false, {ours("hf1! me")})}, Held::Renewal::lost, make_error_code(errc::revoked)},
        {{done(false)}, Held::Renewal::lost, make_error_code(errc::lost)}};
    Desk desk;
    for (const Row& row : rows) {
        desk.place->created = 7;
        Held h = held_of(desk.a);
        Renew op(h);
        desk.asks(op, Step::renew, Needs::young);
        for (const Result& r : row.answers)
            op.answered(r, at(12));
        CHECK(h.renewal == row.is);
        CHECK(h.renewal_error == row.why);
        CHECK(h.renewed_base.has_value() == (row.is == Held::Renewal::renewed));
        if (row.is == Held::Renewal::renewed) CHECK(h.asked);
    }
}

TEST_CASE("operations: no answer to a renewal and to a release") {
    Desk desk;
    Held h = held_of(desk.a);
    Renew(h).missing(make(Error::no_answer), unanswered);
    CHECK(h.renewal == Held::Renewal::unknown);
    CHECK(h.renewal_error == make(Error::no_answer));
    CHECK(std::exchange(h.detail, {}) == "silence");
    Leave(h, *desk.queues).missing(make(Error::closed), unanswered);
    CHECK(h.released == ReleaseResult::unreachable);
    CHECK(h.release_error == make(Error::closed));
    CHECK(h.detail == "silence");
}

TEST_CASE("operations: each answer to a release") {
    struct Row {
        Result answer;
        ReleaseResult is;
        bool repeated = false, late = false;
    };
    const Row rows[] = {{done(true, {ours()}), ReleaseResult::released},
                        {done(true, {ours("hf1! me")}), ReleaseResult::owned_by_other},
                        {done(false), ReleaseResult::already_expired},
                        {done(false), ReleaseResult::unreachable, true},
                        {done(), ReleaseResult::owned_by_other},
                        {done(true, {ours()}), ReleaseResult::already_expired, false, true}};
    Desk desk(false, "ttl=10s&robust=yes");
    for (const Row& row : rows) {
        Held h = held_of(desk.a);
        h.lock_delay = 3s;
        desk.place->valid_until = h.sent + (row.late ? 0s : 1s);
        Leave op(h, *desk.queues);
        CHECK(op.alone());
        const std::string sent = desk.asks(op, Step::leave, Needs::nothing);
        CHECK((sent.find("hf1! me") == sent.npos) == row.late);  // how it ended
        RequestInfo went = at(9);
        went.repeated = row.repeated;
        op.answered(row.answer, went);
        CHECK(h.released == row.is);
    }
}

}  // namespace etcd_operations
