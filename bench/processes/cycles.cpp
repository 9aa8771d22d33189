#include "processes/cycles.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <deque>
#include <holdfast/client.hpp>

#include "bench.hpp"
#include "measure/cpu.hpp"
#include "measure/loop.hpp"

namespace holdfast::bench {

namespace {

void must(error_code ec, const char* what) {
    if (ec) throw SelfCheck(std::string(what) + ": " + ec.message());
}

std::unique_ptr<Lock> lock_of(const Client& client, std::size_t i) {
    auto lock = client.lock("bench/cycles/" + std::to_string(i));
    if (!lock) throw SelfCheck(lock.error().message());
    return std::move(*lock);
}

void block(const Client& client, std::size_t count) {
    const auto lock = lock_of(client, 0);
    for (std::size_t i = 0; i < count; ++i) {
        auto lease = lock->acquire();
        if (!lease) must(lease.error(), "acquire");
        if (lease->release() != ReleaseResult::released) throw SelfCheck("release: not released");
    }
}

struct Slot {
    std::unique_ptr<Lock> lock;
    Lease lease;
};

class Flight {
public:
    Flight(asio::io_context& loop, const Client& client, std::size_t slots) : loop_(&loop) {
        for (std::size_t i = 0; i < slots; ++i)
            slots_.push_back({lock_of(client, i), {}});
    }
    void run(std::size_t count) {
        left_ = count;
        for (Slot& slot : slots_)
            start(slot);
        if (!run_until(*loop_, Clock::now() + std::chrono::minutes(10),
                       [&] { return under_way_ == 0; }))
            throw SelfCheck("not answered within ten minutes");
        must(failure_, "in flight");
    }

private:
    void start(Slot& slot) {
        if (left_ == 0 || failure_) return;
        --left_;
        ++under_way_;
        slot.lock->async_acquire({}, [this, &slot](error_code ec, Lease lease) {
            if (ec) return end(ec);
            slot.lease = std::move(lease);
            slot.lease.async_release(Outcome::done, [this, &slot](error_code e, ReleaseResult) {
                end(e);
                start(slot);
            });
        });
    }
    void end(error_code ec) {
        --under_way_;
        if (ec) failure_ = ec;
    }

    asio::io_context* loop_;
    std::deque<Slot> slots_;
    std::size_t left_ = 0, under_way_ = 0;
    error_code failure_;
};

double switches() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_nvcsw + used.ru_nivcsw);
}

}  // namespace

int cycles_main(const CyclesOptions& o) {
    asio::io_context loop;
    ClientOptions how;
    Diagnostics words;
    how.diagnostics = &words;
    how.executor = loop.get_executor();
    const auto client = Client::open(o.url, how);
    if (!client) throw SelfCheck(words.text());
    const auto run = [&](std::size_t count) {
        if (o.in_flight == 0) return block(*client, count);
        Flight(loop, *client, o.in_flight).run(count);
    };
    run(std::max<std::size_t>(o.count / 20, 1));  // connected, and what is made once is made
    const double cpu = own_cpu_ms(), switched = switches();
    const auto start = Clock::now();
    run(o.count);
    const double us = 1e6 * seconds_since(start), n = static_cast<double>(o.count);
    fmt::print(
        "{} cycles: {:.2f} us each, {:.2f} us of this process' processor time, {:.2f} "
        "switches of its threads\n",
        o.count, us / n, 1e3 * (own_cpu_ms() - cpu) / n, (switches() - switched) / n);
    return 0;
}

}  // namespace holdfast::bench
