// C15: Redlock when one node's clock jumps, or one node comes back without its data.
#include "faults/five.hpp"
#include "faults/holder.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C15";
constexpr std::size_t nodes = Five::count;

enum class Fault : std::uint8_t { none, jump_ahead, jump_back, emptied };

struct Case {
    const char* variant;
    Fault fault;
    bool told_durable;  ///< `durable=yes`
    bool safe;
    const char* note;
};

constexpr Case cases[] = {
    {"no fault", Fault::none, true, true, "the control: nodes 4 and 5 are free, and no more"},
    {"clock jumps ahead", Fault::jump_ahead, true, false,
     "one node's wall clock jumps ahead by more than the ttl"},
    {"clock jumps back", Fault::jump_back, true, true,
     "one node's wall clock jumps back by an hour"},
    {"emptied, durable=yes told wrongly", Fault::emptied, true, false,
     "one node restarts without its data, and votes at once"},
    {"emptied, delayed restart", Fault::emptied, false, true,
     "Holdfast's default: a node that has started does not vote for max_ttl"},
};

/// Makes the fault, and proves it.
void make(Five& five, std::size_t node, const Case& what, int ttl_ms) {
    if (what.fault == Fault::none) return;
    auto& server = five[node];
    if (what.fault == Fault::emptied) {
        const auto before = server.info("server").at("run_id");
        server.restart(lab::Data::fresh);
        if (server.info("server").at("run_id") == before || server.cli({"DBSIZE"}).integer != 0)
            throw SelfCheck("the node was not emptied");
        return;
    }
    const milliseconds by =
        what.fault == Fault::jump_ahead ? milliseconds(ttl_ms + 1000) : milliseconds(-3600000);
    five.clock(node).set(by);
    lab::wait_until([&] { return std::chrono::abs(ahead(server) - by) < milliseconds(500); },
                    lab::default_cap, "the node's clock to jump");
}

SetUp of(const Case& what) {
    return {id, "redlock", what.variant, what.safe, what.note};
}

/// The first holder reaches three nodes only; the fault hits one of them; the second client reaches
/// all five, and finds the lock at two.
void play(const Bench& bench, Five& five, const Case& what, std::size_t number, int ttl_ms,
          Tally& tally) {
    five.start_old();
    const std::string query =
        std::string("ttl=1s&max_ttl=1s") + (what.told_durable ? "&durable=yes" : "");
    const std::string name = "bench/clocks/" + std::to_string(number);
    std::array<bool, nodes> reached;
    for (std::size_t i = 0; i < nodes; ++i)
        reached[(number + i) % nodes] = i < 3;
    const std::size_t hit = (number + 2) % nodes;

    const SetUp set_up = of(what);
    const Deployment few = five.partial(query, reached), all = five.whole(query);
    Holder first(bench, few, name, {.ttl = milliseconds(ttl_ms)},
                 history_of(bench, set_up, few, "A"));
    first.must_acquire(lab::default_cap);
    if (five.holding(name) != 3) throw SelfCheck("the first holder has not just three nodes");
    make(five, hit, what, ttl_ms);
    Holder second(bench, all, name, {.ttl = milliseconds(ttl_ms)},
                  history_of(bench, set_up, all, "B"));
    // Longer than the first one's promise at the time of the fault: the unsafe have time to fail.
    const auto answer = second.acquire_at_last(milliseconds(2 * ttl_ms));
    Overlap overlap;
    if (!answer) {
        overlap = watch(first, second, milliseconds(2 * ttl_ms) + lab::default_cap);
        tally.add_tokens(first.lease().fencing_token(), second.lease().fencing_token());
    } else if (answer != errc::timed_out && answer != errc::no_quorum) {
        throw SelfCheck("the second client: " + answer.message() + ": " + second.words());
    }
    tally.add(overlap);
}

void run(Bench& bench) {
    constexpr int ttl_ms = 1000;
    Five five(bench.site.folder(), false);
    std::size_t number = 0;
    for (const Case& what : cases) {
        Tally tally;
        for (int i = 0; i < bench.options.pick(1, 1, 10) && !bench.stopped(); ++i)
            play(bench, five, what, number++, ttl_ms, tally);
        report(bench, of(what), tally);
    }
}

}  // namespace

Scenario c15_clocks() {
    return {id, "one of Redlock's nodes has its clock moved, or loses its data",
            "The first holder reaches three of five nodes. The wall clock of one of them is moved "
            "by a preloaded shim (TIME proves it), or it is restarted without its data (run_id and "
            "DBSIZE prove it). Then another client, who reaches all, asks for twice the ttl. Both "
            "leases are looked at at the same moments.",
            false, [](const Options&, const Site& site) {
                std::vector<Step> steps;
                if (site.find("redlock") != nullptr)
                    steps.push_back({"redlock, one node's clock, one node's data", run});
                return steps;
            }};
}

}  // namespace holdfast::bench
