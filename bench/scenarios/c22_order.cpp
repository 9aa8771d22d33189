// C22: who asked first, is he served first; and does everybody get his share?
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <holdfast/lab/wait_until.hpp>
#include <numeric>

#include "checker/diary.hpp"
#include "measure/loop.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C22";
constexpr std::size_t queue_length = 20, contenders = 8;

/// Some clients of one process and a loop that their callbacks run on.
struct Party {
    Party(const Deployment& d, std::size_t clients) {
        for (std::size_t i = 0; i < (d.in_process ? 1 : clients); ++i)
            all.push_back(Bench::open(d, loop.get_executor()));
    }
    ~Party() {
        for (Client& client : all)
            client.close();
    }
    Party(const Party&) = delete;
    Party& operator=(const Party&) = delete;
    template <class Done>
    void wait_for(Done done, const char* what) {
        if (!run_until(loop, Clock::now() + std::chrono::seconds(60), done))
            throw SelfCheck(std::string("order: timed out: ") + what);
    }
    asio::io_context loop;
    std::vector<Client> all;
};

/// One line of waiters who ask one after the other; returns the order of grants.
std::vector<std::size_t> order_of_grants(Bench& bench, const Deployment& d, int number) {
    struct Waiter {
        std::unique_ptr<Lock> lock;
        Lease lease;
        Diary::Entry entry;
    };
    Diary diary(bench.history(d, "C22-order"), "order");
    Party party(d, 4);
    std::deque<Waiter> waiters;
    std::vector<std::size_t> order;
    std::size_t released = 0;
    error_code failure;
    const std::string name = "bench/order/" + std::to_string(number);
    const auto first = bench.lock(party.all.front(), d, name);
    const auto in_diary = diary.name(d.prefix + name, &first->capabilities());
    auto first_entry = diary.asked(in_diary);
    auto held = first->acquire();
    if (!held) {
        diary.failed(first_entry, held.error());
        check(held.error(), "acquire");
    }
    diary.granted(first_entry, *held);
    const bool visible = party.all.front().capabilities().has(Capability::fifo);
    for (std::size_t i = 0; i < queue_length; ++i) {
        Waiter& w = waiters.emplace_back();
        w.lock = bench.lock(party.all[i % party.all.size()], d, name);
        w.entry = diary.asked(in_diary);
        w.lock->async_acquire({}, [&, i](error_code ec, Lease lease) {
            Waiter& mine = waiters[i];
            if (ec) {
                diary.failed(mine.entry, ec);
                failure = ec;
                return;
            }
            diary.granted(mine.entry, lease);
            order.push_back(i);
            mine.lease = std::move(lease);
            diary.releasing(mine.entry, mine.lease);
            mine.lease.async_release(Outcome::done, [&](error_code, ReleaseResult result) {
                diary.released(mine.entry, result);
                ++released;
            });
        });
        if (visible) {
            const auto in_line = [&] {
                const auto seen = party.all.front().inspect(d.prefix + name);
                return seen && seen->waiters.size() == i + 1;
            };
            lab::wait_until(in_line, lab::default_cap, "a waiter's place in line");
            diary.in_line(w.entry);
        } else {  // nobody can tell: the next one asks clearly later
            run_until(party.loop, Clock::now() + milliseconds(5), [] { return false; });
        }
    }
    diary.releasing(first_entry, *held);
    diary.released(first_entry, held->release());
    party.wait_for([&] { return failure || released == queue_length; }, "everybody's grant");
    check(failure, "order");
    return order;
}

void run_order(Bench& bench, const Deployment& d) {
    std::vector<double> shares;
    const auto start = Clock::now();
    for (int i = 0; i < bench.options.pick(2, 5, 10) && !bench.stopped(); ++i)
        shares.push_back(inversions(order_of_grants(bench, d, i)));
    if (shares.empty()) return;
    const bool fifo = bench.open(d).capabilities().has(Capability::fifo);
    Row row = row_of(id, d);
    row.metric = "pairs served out of order";
    row.x = queue_length;
    row.n = shares.size();
    row.note = fifo ? "declares first come, first served" : "declares no order";
    const Spread spread = spread_of(shares);
    if (fifo && spread.max > 0) row.status = Status::violated;
    bench.add(row, spread);
    row.metric = "declares fifo";
    row.status = Status::ok;
    bench.add_value(row, fifo ? 1 : 0);
    row.metric = "duration";
    row.unit = "s";
    bench.add_value(row, seconds_since(start));
}

/// Everybody wants the lock all the time and holds it for 1 ms.
void run_shares(Bench& bench, const Deployment& d) {
    struct Contender {
        std::unique_ptr<Lock> lock;
        Lease lease;
        Diary::Entry entry;
        Clock::time_point asked;
        double grants = 0;
    };
    Diary diary(bench.history(d, "C22-shares"), "shares");
    Party party(d, contenders);
    std::deque<Contender> all(contenders);
    std::uint16_t in_diary = 0;
    bool ending = false;
    std::size_t under_way = 0;
    error_code failure;
    Latency wait;
    std::function<void(Contender&)> ask = [&](Contender& c) {
        if (ending) return;
        ++under_way;
        c.asked = Clock::now();
        c.entry = diary.asked(in_diary);
        c.lock->async_acquire({}, [&](error_code ec, Lease lease) {
            if (ec) {
                diary.failed(c.entry, ec);
                --under_way;
                failure = ec;
                return;
            }
            wait.add(Clock::now() - c.asked);
            diary.granted(c.entry, lease);
            c.grants += ending ? 0 : 1;
            c.lease = std::move(lease);
            auto timer = std::make_shared<asio::steady_timer>(party.loop, milliseconds(1));
            timer->async_wait([&, timer](error_code) {
                diary.releasing(c.entry, c.lease);
                c.lease.async_release(Outcome::done, [&](error_code, ReleaseResult result) {
                    diary.released(c.entry, result);
                    --under_way;
                    ask(c);
                });
            });
        });
    };
    for (std::size_t i = 0; i < contenders; ++i) {
        all[i].lock = bench.lock(party.all[i % party.all.size()], d, "bench/shares");
        if (i == 0) in_diary = diary.name("bench/shares", &all[i].lock->capabilities());
        ask(all[i]);
    }
    const auto end = Clock::now() + milliseconds(bench.options.pick(1000, 2500, 10000));
    run_until(party.loop, end, [&] { return bool(failure); });
    ending = true;
    party.wait_for([&] { return under_way == 0; }, "the last grants");
    check(failure, "shares");

    std::vector<double> grants;
    for (const Contender& c : all)
        grants.push_back(c.grants);
    Row row = row_of(id, d, contenders);
    row.n = wait.count();
    row.note = "8 contenders, each holds for 1 ms";
    row.metric = "Jain index";
    bench.add_value(row, jain_index(grants));
    row.metric = "longest wait over mean";
    row.unit = "x";
    bench.add_value(row, wait.mean_us() > 0 ? wait.max_us() / wait.mean_us() : 0);
    row.metric = "longest wait";
    row.unit = "ms";
    bench.add_value(row, wait.max_us() / 1e3);
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments()) {
        if (d.variant == "durable") continue;
        steps.push_back(
            {d.label() + " order of 20 waiters", [d](Bench& bench) { run_order(bench, d); }});
        steps.push_back(
            {d.label() + " shares of 8 contenders", [d](Bench& bench) { run_shares(bench, d); }});
    }
    return steps;
}

}  // namespace

Scenario c22_order() {
    return {
        id, "order of grants against order of requests, and everybody's share",
        "20 callers of 4 clients ask one after the other while the lock is held, each when the one "
        "before is in line; then the order of grants is compared. 8 contenders who hold for 1 ms "
        "each show the shares.",
        false, plan};
}

}  // namespace holdfast::bench
