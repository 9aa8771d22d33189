// Operations without a server: what each answer, each silence and each late answer comes to, and
// what is asked next.
#include "protocol/operations.hpp"

#include "catch.hpp"
#include "holdfast/spi/registry.hpp"
#include "resp/errors.hpp"
#include "rig.hpp"

namespace redis_operations {

using namespace redis_tests;
using namespace holdfast::redis;
using holdfast::error_code;
using holdfast::FencingToken;
using holdfast::ReleaseResult;
using Renewal = spi::Held::Renewal;

namespace {

holdfast::spi::Settings settings(const std::string& query) {
    holdfast::Diagnostics d;
    const auto chosen =
        holdfast::parse_url("redis://127.0.0.1?" + query, spi::Registry::linked(), d);
    REQUIRE(chosen.has_value());
    return chosen->settings;
}

/// The client's side of one lock, and its answers.
struct Desk {
    explicit Desk(const std::string& query = "ttl=10s") : shared(settings(query)) {
        keys.assign("", "a", !shared.options.plain);
        // The server's clock says 1,000,000 s; so its tokens are 10^12.
        shared.clock.sample(1'000'000'000'000, boot_clock::now());
    }
    Shared shared;
    Keys keys;
};

Reply text(std::string words) {
    Reply r;
    r.type = Reply::Type::bulk;
    r.text = std::move(words);
    return r;
}
Reply error(std::string words) {
    Reply r = text(std::move(words));
    r.type = Reply::Type::error;
    return r;
}
Reply status() {
    Reply r = text("OK");
    r.type = Reply::Type::status;
    return r;
}
Reply integer(long long n) {
    Reply r;
    r.type = Reply::Type::integer;
    r.integer = n;
    return r;
}
/// As a codec that is used again may leave it: the text is of an answer before.
Reply nil() {
    Reply r = text("g 1 n");
    r.type = Reply::Type::nil;
    return r;
}

void answer(Operation& o, const Reply& r) {
    REQUIRE(o.wants() != nullptr);
    o.answered(r, &boot_clock::now);
}

/// The words of the request, without the script's name.
std::vector<std::string> asked(Operation& o) {
    REQUIRE(o.wants() != nullptr);
    Operation* const one = &o;
    Command c;
    write(c, {&one, 1}, "hf:c:me");
    std::string bytes;
    c.encode(bytes);
    std::vector<std::string> words;
    for (std::size_t at = bytes.find("\r\n") + 2; at < bytes.size();) {
        const auto end = bytes.find("\r\n", at);
        const auto size = std::stoul(bytes.substr(at + 1, end - at - 1));
        words.push_back(bytes.substr(end + 2, size));
        at = end + 2 + size + 2;
    }
    if (words.front() == "EVALSHA") words.erase(words.begin(), words.begin() + 2);
    return words;
}

Try& timed(Try& t) {
    t.a.sent = boot_clock::now();
    t.a.deadline = t.a.sent + 2s;
    return t;
}

spi::Held held(const Try& t) {
    spi::Held h = t.held();
    h.sent = boot_clock::now();
    h.deadline = h.sent + 2s;
    return h;
}

}  // namespace

TEST_CASE("operations: each answer to an acquisition") {
    struct Row {
        Reply reply;
        error_code why;  // of Failed or NoAnswer
        bool doubt = false;
    };
    const Row rows[] = {
        {text("t"), make_error_code(errc::cancelled)},
        {text("x"), make_error_code(errc::revoked)},
        {text("k"), make(Error::wrong_type)},
        {text("E WRONGTYPE Operation"), make(Error::wrong_type)},
        {error("READONLY You can't write"), make(Error::read_only)},
        {error("ERR of some kind"), make(Error::refused_command), true},
        {text("something"), make(Error::protocol), true},
        {integer(1), make(Error::protocol), true},
        {nil(), make(Error::protocol), true},
    };
    Desk desk;
    for (const Row& row : rows) {
        INFO(row.reply.text);
        Try t("a");
        Acquire op(desk.shared, desk.keys, timed(t).a);
        answer(op, row.reply);
        CHECK(op.wants() == nullptr);
        CHECK_FALSE(op.granted());
        CHECK(t.in_doubt() == row.doubt);
        CHECK(t.error() == row.why);
    }
    Try t("a");
    Acquire op(desk.shared, desk.keys, timed(t).a);
    CHECK(asked(op) ==
          std::vector<std::string>{"5", "a", "{a}:hf:s", "{a}:hf:q", "{a}:hf:w", "{a}:hf:x", "",
                                   t.owner, "10000", "0",
                                   std::to_string(desk.shared.clock.server_ms(t.a.deadline)), ""});
    answer(op, text("g 1000000000000 c"));
    CHECK(op.wants() == nullptr);
    CHECK(op.granted());
    CHECK(t.token() == 1'000'000'000'000);
    CHECK(t.grant().previous == PreviousHolder::crashed);
}

TEST_CASE("operations: busy, with and without a place in line") {
    Desk desk;
    Try t("a");
    Acquire look(desk.shared, desk.keys, timed(t).a);
    answer(look, text("b 0 700"));
    REQUIRE(t.busy());
    CHECK(std::get<spi::Attempt::Busy>(t.a.outcome).polling);
    CHECK(std::get<spi::Attempt::Busy>(t.a.outcome).look_within == 702ms);

    Try waits("a", 10s, true);
    Acquire queue(desk.shared, desk.keys, timed(waits).a);
    CHECK(asked(queue).at(6) == "hf:c:me");
    CHECK(asked(queue).at(9) == "3000");
    answer(queue, text("q 999999999990 5000 ticket 2 1"));
    REQUIRE(waits.busy());
    CHECK_FALSE(std::get<spi::Attempt::Busy>(waits.a.outcome).polling);
    Acquire again(desk.shared, desk.keys, timed(waits).a);
    CHECK(asked(again).back() == "ticket");
    // Told of its turn while the look is under way: the answer knows nothing of it.
    hear(state_of(waits.a.place), 1'000'000'000'000, "r", desk.shared, boot_clock::now());
    answer(again, text("q 999999999990 5000 ticket 0 1"));
    REQUIRE(waits.granted());
    CHECK(waits.grant().previous == PreviousHolder::released);
    CHECK(find_state(waits.a.place)->unclaimed);
}

TEST_CASE("operations: a message to a reader has a number of its own beside the token") {
    Desk desk;
    constexpr std::uint64_t seen = 999'999'999'990, number = 999'999'999'995;
    for (const std::string told : {"r999999999980", "r999999999996", "r"}) {
        INFO(told);
        Try waits("a", 10s, true);
        waits.a.units = {1, spi::Units::all, holdfast::Mode::shared};
        Acquire look(desk.shared, desk.keys, timed(waits).a);
        CHECK(asked(look).back() == "4294967295");
        answer(look, text("q " + std::to_string(seen) + " 5000 ticket 0 1"));
        REQUIRE(waits.busy());
        hear(state_of(waits.a.place), number, told, desk.shared, boot_clock::now());
        // A token that is not older than the grant is a false one.
        const bool real = told != "r999999999996";
        REQUIRE(take_handed(waits.a, desk.shared, boot_clock::now()) == real);
        if (real) CHECK(waits.token() == (told == "r" ? number : 999'999'999'980));
        // Not newer than the last look: it was over before that.
        state_of(waits.a.place).queued = true;
        hear(state_of(waits.a.place), seen, "r999999999980", desk.shared, boot_clock::now());
        CHECK_FALSE(take_handed(waits.a, desk.shared, boot_clock::now()));
    }
}

TEST_CASE("operations: a message is believed where tokens are ahead of the server's clock") {
    Desk desk;
    constexpr std::uint64_t seen = 1'000'600'000'000;  // it was set back by ten minutes
    for (const std::uint64_t more : {1ULL, 60'000'000ULL}) {
        INFO(more);
        Try waits("a", 10s, true);
        Acquire look(desk.shared, desk.keys, timed(waits).a);
        answer(look, text("q " + std::to_string(seen) + " 5000 ticket 0 1"));
        REQUIRE(waits.busy());
        hear(state_of(waits.a.place), seen + more, "r", desk.shared, boot_clock::now());
        CHECK(take_handed(waits.a, desk.shared, boot_clock::now()) == (more == 1));
    }
}

TEST_CASE(
    "operations: lock_delay and min_hold are lengths, whatever is known of the server's clock") {
    Desk desk;
    for (const bool shares : {false, true}) {
        INFO(shares);
        Try t("a");
        if (shares) t.a.units = {1, spi::Units::all, holdfast::Mode::shared};
        t.a.lock_delay = 2s;
        t.a.min_hold = 60s;
        Acquire op(desk.shared, desk.keys, timed(t).a);
        CHECK(asked(op).at(9) == "60000");
        answer(op, text("g 1000000000000 n"));
        // What the handshake said of the clock was wrong, or it has been set since.
        for (const std::int64_t us : {-600'000'000LL, 0LL, 600'000'000LL}) {
            desk.shared.clock.sample(1'000'000'000'000 + us, boot_clock::now());
            auto h = held(t);
            h.lock_delay = 2s;
            h.min_hold = 60s;
            h.units = t.a.units;
            Leave release(desk.shared, desk.keys, h, h.sent);
            const auto closed = std::stoll(asked(release).at(10));
            CHECK(closed > 50'000);
            CHECK(closed < 61'000);
            CHECK(asked(release).at(11) == "2000");
            h.sent += 20s;
            Renew renew(desk.shared, desk.keys, h);
            const auto kept = std::stoll(asked(renew).at(shares ? 8 : 5));
            CHECK(kept > 30'000);
            CHECK(kept < 41'000);
            h.sent += 60s;
            Renew later(desk.shared, desk.keys, h);
            CHECK(asked(later).at(shares ? 8 : 5) == "12000");
            Leave last(desk.shared, desk.keys, h, h.sent);
            CHECK(asked(last).at(10) == "0");
        }
    }
}

TEST_CASE("operations: too late by the server's clock is asked once more, with the right time") {
    Desk desk;
    Try t("a");
    Acquire op(desk.shared, desk.keys, timed(t).a);
    const auto before = asked(op).at(10);
    answer(op, text("l 2000000000"));
    REQUIRE(op.wants() != nullptr);
    CHECK(std::stoll(asked(op).at(10)) > std::stoll(before) + 900'000'000);
    answer(op, text("l 2000000000"));
    CHECK(op.wants() == nullptr);
    CHECK(t.error() == make(Error::no_answer));
    CHECK_FALSE(t.in_doubt());

    Try renews("a");
    Acquire taken(desk.shared, desk.keys, timed(renews).a);
    answer(taken, text("g 1000000000000 n"));
    auto h = held(renews);
    Renew renew(desk.shared, desk.keys, h);
    answer(renew, text("l 3000000000"));
    answer(renew, text("y"));
    CHECK(h.renewal == Renewal::renewed);
    Renew twice(desk.shared, desk.keys, h);
    answer(twice, text("l 3000000000"));
    answer(twice, text("l 3000000000"));
    CHECK(twice.wants() == nullptr);
    CHECK(h.renewal == Renewal::unknown);
}

TEST_CASE("operations: no answer is a doubt only where something was sent, and is remembered") {
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Desk desk(mode);
        Try t("a");
        Acquire unsent(desk.shared, desk.keys, timed(t).a);
        unsent.missing({make(Error::refused), "nobody there"}, false);
        CHECK_FALSE(t.in_doubt());
        CHECK(t.error() == make(Error::refused));
        CHECK(t.a.detail == "nobody there");
        Acquire op(desk.shared, desk.keys, timed(t).a);
        op.missing(make(Error::no_answer), true);
        CHECK(op.wants() == nullptr);
        CHECK(t.in_doubt());
        CHECK_FALSE(t.a.detail.empty());
        CHECK(find_state(t.a.place)->unanswered);
        CHECK(find_state(t.a.place)->ghost > desk.shared.clock.server_ms(t.a.deadline));
        if (desk.shared.options.plain) continue;
        // Its late request is refused for as long as it may arrive.
        Leave op2(desk.shared, desk.keys, t.a, boot_clock::now());
        CHECK(asked(op2).at(7) == "u");
        CHECK(asked(op2).at(8) == std::to_string(find_state(t.a.place)->ghost));
        op2.missing(make(Error::no_answer), true);
        CHECK(op2.error() == make(Error::no_answer));
    }
}

TEST_CASE("operations: the mark lasts as long as the request that it is to refuse") {
    Desk desk;
    Try t("a");
    Acquire op(desk.shared, desk.keys, timed(t).a);
    const auto sent = std::stoll(asked(op).at(10));
    // Before its silence is noticed another answer has told that the server's clock was set back.
    desk.shared.clock.sample(1'000'000'000'000 - 10'000'000, boot_clock::now());
    op.missing(make_error_code(errc::unavailable), true);
    CHECK(find_state(t.a.place)->ghost > sent);
}

TEST_CASE("operations: each answer to a release, a withdrawal and a renewal") {
    struct Row {
        Reply reply;
        ReleaseResult result;
        error_code error;
    };
    const Row rows[] = {
        {text("r"), ReleaseResult::released, {}},
        {text("e"), ReleaseResult::already_expired, {}},
        {text("o"), ReleaseResult::owned_by_other, {}},
        {text("k"), ReleaseResult::owned_by_other, {}},
        {text("E WRONGTYPE of a key"), ReleaseResult::owned_by_other, {}},
        {error("NOPERM no right"), ReleaseResult::unreachable, make(Error::denied)},
        {text("?"), ReleaseResult::unreachable, make(Error::protocol)},
        {nil(), ReleaseResult::unreachable, make(Error::protocol)},
    };
    Desk desk;
    Try t("a");
    Acquire op(desk.shared, desk.keys, timed(t).a);
    answer(op, text("g 1000000000000 n"));
    for (const Row& row : rows) {
        INFO(row.reply.text);
        const auto h = held(t);
        Leave release(desk.shared, desk.keys, h, h.sent);
        CHECK(asked(release).at(9) == "1:0001000000000000:0r:");
        answer(release, row.reply);
        CHECK(release.wants() == nullptr);
        CHECK(release.result() == row.result);
        state_of(t.a.place).queued = true;
        Leave withdraw(desk.shared, desk.keys, t.a, boot_clock::now());
        CHECK(asked(withdraw).at(9).empty());
        answer(withdraw, row.reply);
        CHECK(withdraw.error() == row.error);
        CHECK(find_state(t.a.place)->queued == static_cast<bool>(row.error));
    }
    struct Says {
        Reply reply;
        Renewal renewal;
        error_code error;
    };
    const Says says[] = {
        {text("n"), Renewal::lost, make_error_code(errc::lost)},
        {text("x"), Renewal::lost, make_error_code(errc::revoked)},
        {text("E WRONGTYPE of a key"), Renewal::unknown, make(Error::wrong_type)},
        {error("LOADING"), Renewal::unknown, make(Error::busy)},
        {text("?"), Renewal::unknown, make(Error::protocol)},
        {text("y"), Renewal::renewed, {}},
    };
    state_of(t.a.place).unclaimed = true;
    for (const Says& one : says) {
        INFO(one.reply.text);
        auto h = held(t);
        Renew renew(desk.shared, desk.keys, h);
        CHECK(asked(renew).at(6) == "1");
        answer(renew, one.reply);
        CHECK(h.renewal == one.renewal);
        CHECK(h.renewal_error == one.error);
        CHECK(h.detail == (one.reply.is(Reply::Type::error)   ? one.reply.text
                           : one.reply.text.starts_with("E ") ? one.reply.text.substr(2)
                                                              : ""));
    }
    CHECK_FALSE(find_state(t.a.place)->unclaimed);
    auto h = held(t);
    Renew silent(desk.shared, desk.keys, h);
    silent.missing(make(Error::no_answer), true);
    CHECK(h.renewal == Renewal::unknown);
    CHECK(h.renewal_error == make(Error::no_answer));
}

TEST_CASE("operations: too few replicas make a doubt of a grant, and nothing of a renewal") {
    Desk desk("min_replicas_ack=1");
    Try t("a");
    Acquire op(desk.shared, desk.keys, timed(t).a);
    answer(op, text("g 1000000000000 n"));
    REQUIRE(op.granted());
    op.unconfirmed({make(Error::not_replicated), "0 of 1"});
    CHECK(t.in_doubt());
    CHECK(find_state(t.a.place)->unanswered);
    auto h = held(t);
    Renew renew(desk.shared, desk.keys, h);
    answer(renew, text("y"));
    REQUIRE(renew.granted());
    renew.unconfirmed({make(Error::not_replicated), "0 of 1"});
    CHECK(h.renewal == Renewal::unknown);
}

TEST_CASE("operations: plain, step by step") {
    Desk desk("mode=plain");
    const std::vector<std::string> get{"GET", "a"};
    Try t("a");
    Acquire op(desk.shared, desk.keys, timed(t).a);
    CHECK(asked(op) == std::vector<std::string>{"SET", "a", t.owner, "NX", "PX", "10000"});
    answer(op, status());
    CHECK(t.granted());

    Try quick("a"), waits("a", 10s, true);
    for (Try* each : {&quick, &waits}) {
        Acquire kind(desk.shared, desk.keys, timed(*each).a);
        answer(kind, nil());
        CHECK(asked(kind) == get);
        answer(kind, error("WRONGTYPE Operation"));
        CHECK(each->error() == errc::kind_mismatch);
    }
    Acquire foreign(desk.shared, desk.keys, timed(waits).a);
    answer(foreign, nil());
    answer(foreign, text("E WRONGTYPE of somebody's value"));
    CHECK(waits.busy());
    Acquire known(desk.shared, desk.keys, timed(quick).a);
    answer(known, nil());
    CHECK(known.wants() == nullptr);  // once for each name
    CHECK(quick.busy());

    Try lost("a", 10s, true);  // its answer was lost: the next attempt finds our own lock
    Acquire silent(desk.shared, desk.keys, timed(lost).a);
    silent.missing(make(Error::no_answer), true);
    Acquire again(desk.shared, desk.keys, timed(lost).a);
    CHECK(asked(again) == std::vector<std::string>{"1", "a", lost.owner, "10000"});
    answer(again, integer(1));
    CHECK(again.wants() == nullptr);
    CHECK(lost.granted());
    Acquire other(desk.shared, desk.keys, timed(lost).a);
    answer(other, integer(0));
    CHECK(asked(other).front() == "SET");
    answer(other, nil());
    CHECK(other.wants() == nullptr);
    CHECK(lost.busy());
    Acquire unsure(desk.shared, desk.keys, timed(lost).a);
    unsure.missing(make(Error::no_answer), true);
    CHECK(lost.in_doubt());
    // Its own deadline over, the lost request is asked about once more and no longer.
    timed(lost).a.deadline = boot_clock::now() - 1ms;
    find_state(lost.a.place)->ghost = 0;
    for (const bool asks : {true, false}) {
        Acquire later(desk.shared, desk.keys, lost.a);
        CHECK((asked(later).front() != "SET") == asks);
        if (asks) answer(later, integer(0));
        answer(later, nil());
        CHECK(later.wants() == nullptr);
        CHECK(lost.busy());
    }

    const auto h = held(t);
    const auto release = [&](std::vector<Reply> replies) {
        Leave leave(desk.shared, desk.keys, h, h.sent);
        for (const Reply& r : replies)
            answer(leave, r);
        CHECK(leave.wants() == nullptr);
        return leave.result();
    };
    CHECK(release({integer(1)}) == ReleaseResult::released);
    CHECK(release({integer(0), nil()}) == ReleaseResult::already_expired);
    CHECK(release({integer(0), text("somebody")}) == ReleaseResult::owned_by_other);
    CHECK(release({integer(0), text("E READONLY of somebody's")}) == ReleaseResult::owned_by_other);
    CHECK(release({integer(0), integer(3)}) == ReleaseResult::unreachable);
    CHECK(release({error("LOADING")}) == ReleaseResult::unreachable);
    Leave withdraw(desk.shared, desk.keys, t.a, boot_clock::now());
    answer(withdraw, integer(0));
    CHECK(withdraw.wants() == nullptr);
    CHECK_FALSE(withdraw.error());

    auto renewed = held(t);
    const auto renew = [&](const Reply& r) {
        Renew one(desk.shared, desk.keys, renewed);
        answer(one, r);
        return renewed.renewal;
    };
    CHECK(renew(integer(1)) == Renewal::renewed);
    CHECK(renew(integer(0)) == Renewal::lost);
    CHECK(renewed.renewal_error == errc::lost);
    CHECK(renew(integer(2)) == Renewal::lost);
    CHECK(renewed.renewal_error == errc::revoked);
    CHECK(renew(error("WRONGTYPE Operation")) == Renewal::lost);
    CHECK(renew(error("LOADING")) == Renewal::unknown);
    CHECK(renew(text("1")) == Renewal::unknown);
}

}  // namespace redis_operations
