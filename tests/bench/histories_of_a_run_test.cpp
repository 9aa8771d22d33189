// The histories of one run, from the files that processes get to the exit code.
#include <filesystem>

#include "catch.hpp"
#include "checker/recorder.hpp"
#include "histories.hpp"
#include "measure/histories.hpp"
#include "verdict.hpp"

using namespace holdfast::bench;

namespace {

/// Two processes that hold one name one after the other, or both at once.
void two_holders(const std::filesystem::path& first, const std::filesystem::path& second,
                 bool at_once) {
    history::Recorder a(first, "a"), b(second, "b");
    const auto grant = [](history::Recorder& r, std::uint64_t token) {
        const auto ticket = r.invoked(r.name("lock", history::declares_fencing));
        r.granted(ticket, history::never, token, {}, history::Previous::unknown);
        return ticket;
    };
    const auto release = [](history::Recorder& r, const history::Ticket& ticket) {
        r.releasing(ticket, history::never);
        r.released(ticket, history::Answer::released);
    };
    const auto one = grant(a, 1);
    if (!at_once) release(a, one);
    release(b, grant(b, 2));
    if (at_once) release(a, one);
}

Rows judged(const std::filesystem::path& folder, Promise promise, bool at_once) {
    Histories histories(folder);
    two_holders(histories.file("redis", "default", promise, "a"),
                histories.file("redis", "default", promise, "b"), at_once);
    Rows rows;
    histories.judge(rows);
    return rows;
}

}  // namespace

TEST_CASE("two holders at once end a run with 2, where exclusion is promised") {
    const histories::Folder folder;
    const auto of = [&](const char* name) { return folder.path() / name; };
    const Rows sound = judged(of("sound"), Promise::holdfast, false);
    CHECK(exit_code(sound) == 0);
    CHECK(find(sound, {history_scenario, "redis", "default", history_recorded})->value == 2);
    CHECK(find(sound, {history_scenario, {}, {}, history_cost})->value > 0);
    CHECK(exit_code(judged(of("broken"), Promise::holdfast, true)) == 2);
    const Rows control = judged(of("control"), Promise::nothing, true);
    CHECK(exit_code(control) == 0);
    CHECK(find(control, {history_scenario, {}, {}, history_overlaps})->value == 1);
}

TEST_CASE("deployments are judged apart, and a process that recorded nothing is noticed") {
    const histories::Folder folder;
    Histories histories(folder.path());
    Rows rows;
    histories.judge(rows);
    CHECK(rows.empty());  // nobody asked for a file

    // The same name on two servers: no overlap.
    history::Recorder a(histories.file("redis", "default", Promise::holdfast, "a"), "a");
    history::Recorder b(histories.file("redis", "durable", Promise::holdfast, "b"), "b");
    for (history::Recorder* r : {&a, &b}) {
        const auto ticket = r->invoked(r->name("lock"));
        r->granted(ticket, history::never, 1, {}, history::Previous::unknown);
    }
    histories.judge(rows);
    CHECK(exit_code(rows) == 0);
    CHECK(find_all(rows, {history_scenario, "redis", {}, history_recorded}).size() == 2);

    (void)histories.file("redis", "durable", Promise::holdfast, "silent");
    rows.clear();
    histories.judge(rows);
    CHECK(exit_code(rows) == 1);
    CHECK(find(rows, {history_scenario, "redis", "default", history_damage})->value == 0);
    CHECK(find(rows, {history_scenario, "redis", "durable", history_damage})->value == 1);
}

TEST_CASE("a try that failed owes no file that it never wrote; what it wrote is judged") {
    const histories::Folder folder;
    Histories histories(folder.path());
    const auto file = [&](const char* who) {
        return histories.file("redis", "default", Promise::holdfast, who);
    };
    const auto damaged = [&] {
        Rows rows;
        histories.judge(rows);
        return find(rows, {history_scenario, "redis", "default", history_damage})->value;
    };
    (void)file("silent, before");
    histories.next_try();
    two_holders(file("a"), file("b"), true);
    (void)file("killed before it wrote");
    CHECK(damaged() == 2);
    histories.forget_unwritten();
    CHECK(damaged() == 1);
    histories.next_try();
    two_holders(file("a"), file("b"), false);
    Rows rows;
    histories.judge(rows);
    CHECK(find(rows, {history_scenario, "redis", "default", history_recorded})->value == 4);
    CHECK(exit_code(rows) == 2);  // the first try's two holders
}
