// C29: the soft lock: each task by one worker at a time, mostly. Workers are killed at random: is
// every task done, and how many are done twice?
#include <fmt/format.h>

#include <deque>
#include <numeric>

#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C29";
constexpr auto cap = std::chrono::seconds(60);

struct Plan {
    int tasks, workers, kills, ttl_ms;
};

struct Form {
    Deployment deployment;
    bool locks = true;
    std::mt19937_64 random;
};

struct Result {
    int never = 0, twice = 0, killed = 0;
    double ms = 0;
};

/// The processes of one form. All are started beforehand, since to start takes longer than a task.
class Crew {
public:
    Crew(const Bench& bench, Form& form, const Plan& plan, const std::string& name)
        : plan_(&plan), random_(&form.random), store_(bench.site.folder() / (name + ".sock")) {
        store_.reset(0, 1);
        for (int i = 0; i < plan.workers + plan.kills; ++i) {
            WorkerOptions how;
            how.job = "tasks";
            how.guard = form.locks ? "holdfast" : "none";
            how.store = store_.address();
            how.url = form.deployment.open;
            how.name = form.deployment.prefix + "bench/" + name;
            how.who = "w" + std::to_string(i);
            how.cycles = plan.tasks;
            how.ttl_ms = plan.ttl_ms;
            if (form.locks) how.history = bench.history(form.deployment, "C29-" + how.who).string();
            idle_.push_back(start_worker(how, bench.site.folder() / "workers.log"));
        }
    }
    void wait_up() {
        const auto all = plan_->workers + plan_->kills;
        lab::wait_until([&] { return store_.cell("up") == all; }, cap, "the workers");
    }
    Result play() {
        const auto began = Clock::now();
        std::vector<lab::Process> workers;
        for (int i = 0; i < plan_->workers; ++i)
            workers.push_back(begin());
        Result result;
        for (const int moment : moments()) {
            lab::wait_until([&] { return store_.sum("effect/") >= moment; }, cap, "a task");
            lab::Process& victim = workers[(*random_)() % workers.size()];
            result.killed += victim.alive() ? 1 : 0;
            victim.kill();
            victim = begin();
        }
        const auto all_done = [&] { return store_.sum("done/") == plan_->tasks; };
        lab::wait_until(all_done, cap, "the last task");
        result.ms = millis_since(began);
        join_workers(workers, 60);
        for (int i = 0; i < plan_->tasks; ++i) {
            const auto effects = store_.cell("effect/" + std::to_string(i));
            result.never += effects == 0 ? 1 : 0;
            result.twice += effects > 1 ? 1 : 0;
        }
        return result;
    }

private:
    lab::Process begin() {
        store_.put("may/w" + std::to_string(begun_++), 1);
        lab::Process next = std::move(idle_.front());
        idle_.pop_front();
        return next;
    }
    /// Somebody is killed after so many effects.
    std::vector<int> moments() {
        std::vector<int> drawn(static_cast<std::size_t>(plan_->tasks - 1));
        std::iota(drawn.begin(), drawn.end(), 1);
        std::shuffle(drawn.begin(), drawn.end(), *random_);
        drawn.resize(static_cast<std::size_t>(plan_->kills));
        std::sort(drawn.begin(), drawn.end());
        return drawn;
    }

    const Plan* plan_;
    std::mt19937_64* random_;
    Store store_;
    std::deque<lab::Process> idle_;
    int begun_ = 0;
};

void add_rows(Bench& bench, const Form& form, const Plan& plan, const Result& result) {
    Row row = row_of(id, form.deployment, plan.workers);
    row.n = static_cast<std::uint64_t>(plan.tasks);
    const auto add = [&](const char* metric, const std::string& unit, double value) {
        row.metric = metric;
        row.unit = unit;
        bench.add_value(row, value);
    };
    const auto of_tasks = fmt::format("of {} tasks", plan.tasks);
    row.note =
        fmt::format("{} workers, {} killed, ttl {} ms", plan.workers, result.killed, plan.ttl_ms);
    add("tasks never done", of_tasks, result.never);
    add("tasks done more than once", of_tasks, result.twice);
    add("workers killed", "", result.killed);
    add("time until all tasks were done", "ms", result.ms);
}

void run(Bench& bench) {
    const Plan plan =
        bench.options.pick(Plan{20, 2, 1, 600}, Plan{40, 3, 4, 1000}, Plan{200, 4, 20, 1000});
    std::vector<Form> forms;
    for (const Deployment& d : across_processes(bench.site))
        forms.push_back({d, true, std::mt19937_64(bench.random())});
    forms.push_back(
        {variant_of("none", "guard: none", {}), false, std::mt19937_64(bench.random())});
    std::deque<Crew> crews;
    for (std::size_t i = 0; i < forms.size(); ++i)
        crews.emplace_back(bench, forms[i], plan, "c29-" + std::to_string(i));
    for (Crew& crew : crews)
        crew.wait_up();
    std::vector<Result> results(forms.size());
    std::vector<std::function<void()>> jobs;
    for (std::size_t i = 0; i < forms.size(); ++i)
        jobs.emplace_back([&, i] { results[i] = crews[i].play(); });
    side_by_side(jobs);
    for (std::size_t i = 0; i < forms.size(); ++i)
        add_rows(bench, forms[i], plan, results[i]);
}

}  // namespace

Scenario c29_soft_lock() {
    return {id, "a soft lock: tasks, and workers that are killed at random",
            "Worker processes go through one list of tasks; each task has a lock of its own, which "
            "nobody waits for. A task takes effect half-way and is marked as done at the end, both "
            "in a store. Workers are killed after a random number of effects (by the seed) and "
            "replaced. Beside it the same without locks. All backends at once.",
            false, [](const Options&, const Site&) {
                return std::vector<Step>{{"tasks and killed workers, all backends", run}};
            }};
}

}  // namespace holdfast::bench
