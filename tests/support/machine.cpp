// What the machine did meanwhile, said with each test that fails: a failure while both cores were
// taken away for a second reads differently from one on a quiet machine.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "catch.hpp"
#include "stalls.hpp"

namespace {

#if CATCH_VERSION_MAJOR >= 3
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

/// Milliseconds in which some process had to wait for `what` (cpu, io, memory), since the machine
/// started; nothing where the kernel does not count it (Documentation/accounting/psi.rst).
std::optional<long long> waited_for(const std::string& what) {
    std::ifstream file("/proc/pressure/" + what);
    const std::string key = "total=";
    std::string line;
    if (!std::getline(file, line)) return std::nullopt;
    const auto at = line.find(key);
    if (at == std::string::npos) return std::nullopt;
    return std::stoll(line.substr(at + key.size())) / 1000;
}

class Machine final : public Listener {
public:
    using Listener::Listener;

    void testCaseStarting(const Catch::TestCaseInfo& info) override {
        Listener::testCaseStarting(info);
        stalls_.emplace();
        start_ = std::chrono::steady_clock::now();
        for (Resource& r : resources_)
            r.before = waited_for(r.name);
    }

    void testCaseEnded(const Catch::TestCaseStats& stats) override {
        if (stats.totals.assertions.failed > 0) {
            const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
                std::chrono::steady_clock::now() - start_);
            std::cout << "the machine in the " << took.count()
                      << " ms of this test: a thread that was due waited up to "
                      << stalls_->longest() << " ms";
            for (const Resource& r : resources_)
                if (const auto after = waited_for(r.name); after && r.before)
                    std::cout << "; " << *after - *r.before << " ms with somebody waiting for "
                              << r.name;
            std::cout << std::endl;
        }
        stalls_.reset();
        Listener::testCaseEnded(stats);
    }

private:
    struct Resource {
        std::string name;
        std::optional<long long> before;
    };
    std::optional<test_support::Stalls> stalls_;
    std::chrono::steady_clock::time_point start_;
    Resource resources_[3] = {{"cpu", {}}, {"io", {}}, {"memory", {}}};
};

}  // namespace

CATCH_REGISTER_LISTENER(Machine)
