#include "random_member.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <future>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "holdfast/lab/wait_until.hpp"
#include "witness.hpp"

namespace suite {
namespace {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;

constexpr unsigned threads_of_a_member = 2;
/// Who waits for so long waits for ever: a dead holder's time is over much sooner.
constexpr hf::milliseconds patience = 30s;

[[noreturn]] void fail(const std::string& what, const std::string& why) {
    throw std::runtime_error(what + ": " + why);
}

class MemberThread {
public:
    MemberThread(const hf::Client& client, const RandomTrial& trial, unsigned number)
        : trial_(trial),
          witness_(trial.witness),
          random_(trial.seed * threads_of_a_member + number),
          who_(std::to_string(::getpid()) + "/" + std::to_string(trial.seed) + "." +
               std::to_string(number)) {
        const auto make = [&](const std::string& name, const hf::LockOptions& options) {
            return client.make_lock(name, options).value();
        };
        mutex_ = make(trial.name, {});
        const auto& can = mutex_->capabilities();
        downgrades_ = can.has(hf::Capability::downgrade);
        if (can.has(hf::Capability::shared))
            readers_ = make(trial.name, {.kind = hf::Kind::shared_mutex});
        if (can.has(hf::Capability::semaphore))
            permits_ =
                make(trial.permits_name(), {.kind = hf::Kind::semaphore, .limit = trial.limit});
    }
    Witness& witness() { return witness_; }
    void run() {
        while (!witness_.said("over"))
            round();
    }

private:
    unsigned pick(unsigned from, unsigned to) {
        return std::uniform_int_distribution<unsigned>(from, to)(random_);
    }
    bool chance(unsigned percent) { return pick(1, 100) <= percent; }

    void round() {
        hf::AcquireOptions options;
        hf::Lock* lock = mutex_.get();
        bool can_downgrade = false;
        if (permits_ && chance(40)) {
            lock = permits_.get();
            options.permits = pick(1, trial_.limit);
        } else if (readers_ && chance(75)) {
            lock = readers_.get();
            if (chance(65)) options.mode = hf::Mode::shared;
            can_downgrade = downgrades_ && options.mode == hf::Mode::exclusive;
        }
        auto lease = ask(*lock, options);
        if (!lease) return;
        const std::string name(lease->name());
        const bool counted = lock == permits_.get();
        const std::uint32_t limit = counted ? trial_.limit : all_units;
        std::uint32_t units = counted                            ? options.permits
                              : options.mode == hf::Mode::shared ? 1
                                                                 : all_units;
        witness_.enter(name, who_, units, limit, lease->valid_until());
        for (unsigned looks = pick(0, 3); looks > 0; --looks)
            witness_.look();
        if (can_downgrade && chance(30)) {
            // Readers may come in before the answer is here.
            witness_.enter(name, who_, units = 1, limit, lease->valid_until());
            keeps(*lease, lease->downgrade(), "downgrade");
            witness_.look();
        }
        if (chance(15)) keeps(*lease, lease->renew(), "renewal");
        witness_.leave(name, who_);
        const auto released = lease->release();
        if (released != hf::ReleaseResult::released && hf::boot_clock::now() < lease->valid_until())
            fail("release", std::string(hf::to_string(released)));
    }

    /// What a lease that has not run out must not be refused.
    void keeps(const hf::Lease& lease, const hf::result<void>& answer, const std::string& what) {
        if (answer)
            witness_.did(what + "s");
        else if (hf::boot_clock::now() < lease.valid_until())
            fail(what, answer.error().message());
    }

    /// Waits for as long as it takes, or not at all, for a while, or until it is cancelled.
    std::optional<hf::Lease> ask(hf::Lock& lock, hf::AcquireOptions options) {
        hf::Diagnostics words;
        options.diagnostics = &words;
        options.wait = patience;
        std::vector<hf::errc> may_be;
        std::string refused;
        const unsigned way = pick(0, 9);
        std::stop_source stop;
        std::future<void> canceller;
        if (way < 2) {
            options.wait = 0ms;
            may_be = {hf::errc::contended};
            refused = "contended";
        } else if (way < 4) {
            options.wait = hf::milliseconds(pick(1, 30));
            // The time may be over before the server has said that somebody else has it.
            may_be = {hf::errc::timed_out, hf::errc::in_doubt, hf::errc::unavailable};
            refused = "timed out";
        } else if (way < 6) {
            may_be = {hf::errc::cancelled};
            refused = "cancelled";
            canceller = std::async(std::launch::async, [&stop, after = 1us * pick(0, 8000)] {
                const auto end = hf::boot_clock::now() + after;
                (void)lab::reached([&] { return hf::boot_clock::now() >= end; }, 1s);
                stop.request_stop();
            });
        }
        auto lease = lock.acquire(options, stop.get_token());
        if (canceller.valid()) canceller.get();
        if (lease) return std::move(*lease);
        const hf::error_code why = lease.error();
        if (std::none_of(may_be.begin(), may_be.end(), [&](hf::errc e) { return why == e; }))
            fail("acquire", why.message() + ' ' + words.text());
        witness_.did(refused);
        return std::nullopt;
    }

    const RandomTrial& trial_;
    Witness witness_;
    std::mt19937_64 random_;
    std::string who_;
    bool downgrades_ = false;
    std::unique_ptr<hf::Lock> mutex_, readers_, permits_;
};

}  // namespace

void run_member(const hf::Client& client, const RandomTrial& trial) {
    std::vector<std::future<void>> threads;
    for (unsigned number = 0; number < threads_of_a_member; ++number)
        threads.push_back(std::async(std::launch::async, [&client, &trial, number] {
            MemberThread thread(client, trial, number);
            thread.witness().ready();
            lab::wait_until([&] { return thread.witness().said("go"); }, 60s, "the word to go");
            thread.run();
        }));
    for (auto& t : threads)
        t.wait();
    for (auto& t : threads)
        t.get();
}

}  // namespace suite
