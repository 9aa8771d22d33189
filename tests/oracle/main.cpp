// The rules of a name as the oracle of the backends: random schedules of every verb and operator's
// call run on a backend with its real server and on spi::NameState, and each answer has to be the
// same. Time passes at once, by moved clocks.
//
//   oracle memory|sqlite|postgresql|mysql [--steps N] [--seed N]
//
// Prints the shortest schedule that shows a difference. Exit codes: 0 none, 1 one, 64 wrong usage.
#include <fmt/core.h>

#include <charconv>

#include "stage.hpp"

namespace {

using namespace oracle;

constexpr int steps_each = 40;

class Run {
public:
    explicit Run(const std::string& backend) : stage_(make_stage(backend)) {}

    /// Three times at most where the machine stood still.
    std::optional<Difference> play(const std::vector<Operation>& all) {
        for (int trial = 1;; ++trial) {
            try {
                return stage_->play(all, seed, tally);
            } catch (const Void& why) {
                fmt::print("void trial {}: {}\n", trial, why.what());
                if (trial < 3) continue;
                ++voided;
                return std::nullopt;
            }
        }
    }
    /// Without the steps that it does not need.
    std::vector<Operation> shrunk(std::vector<Operation> all, Difference& found) {
        all.resize(found.step + 1);
        for (bool less = true; less;) {
            less = false;
            for (std::size_t i = all.size(); i-- > 0;) {
                std::vector<Operation> without = all;
                without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
                if (i < without.size()) without[i].time += all[i].time;
                if (const auto still = play(without)) {
                    all = std::move(without);
                    all.resize(still->step + 1);
                    found = *still;
                    less = true;
                    break;
                }
            }
        }
        return all;
    }
    hf::Capabilities capabilities() const { return stage_->capabilities(); }

    long seed = 0;
    Tally tally;
    int voided = 0;  ///< schedules that say nothing, since the machine stood still three times

private:
    std::unique_ptr<Stage> stage_;
};

bool number(std::string_view text, long& into) {
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), into);
    return ec == std::errc() && end == text.data() + text.size() && into > 0;
}

int usage() {
    fmt::print(stderr, "oracle {} [--steps N] [--seed N]\n", backends);
    return 64;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty() || words.size() % 2 == 0) return usage();
    long steps = 20'000, seed = static_cast<long>(std::random_device{}() >> 1U) + 1;
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
        const bool known = words[i] == "--steps" || words[i] == "--seed";
        if (!known || !number(words[i + 1], words[i] == "--steps" ? steps : seed)) return usage();
    }
    const std::string all_backends = "|" + std::string(backends) + "|";
    if (all_backends.find("|" + words[0] + "|") == all_backends.npos) return usage();
    Run run(words[0]);
    const auto capabilities = run.capabilities();
    int schedules = 0;
    for (; run.tally.steps < steps; ++seed, ++schedules) {
        run.seed = seed;
        if (run.voided > 3 + schedules / 20) {
            fmt::print("{} of {} schedules void: the machine is too busy\n", run.voided, schedules);
            return 1;
        }
        std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
        const auto all = schedule(random, steps_each, capabilities);
        auto found = run.play(all);
        if (!found) continue;
        fmt::print("{}, seed {}: a difference\n", words[0], seed);
        for (const Operation& o : run.shrunk(all, *found))
            fmt::print("  {}\n", o.text());
        fmt::print("the rules:   {}\nthe backend: {}\n", found->rules, found->backend);
        return 1;
    }
    const Tally& t = run.tally;
    fmt::print(
        "{}: {} steps, {} grants, {} losses, {} of another kind, {} granted later; no difference\n",
        words[0], t.steps, t.grants, t.lost, t.refused, t.late);
}
