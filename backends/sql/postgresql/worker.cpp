#include "worker.hpp"

#include <algorithm>
#include <functional>

#include "errors.hpp"

namespace holdfast::postgresql {

/// Jobs that were refused a connection, and so have surely done nothing.
void Worker::hand_on_refused(Jobs& jobs) {
    const auto refused = [](const std::shared_ptr<Job>& job) {
        return std::all_of(job->steps.begin(), job->steps.end(),
                           [](const Step& s) { return s.error == make(Error::too_many); });
    };
    const auto first = std::partition(jobs.begin(), jobs.end(), std::not_fn(refused));
    Jobs others(first, jobs.end());
    for (const auto& job : others)
        for (Step& s : job->steps)
            s.open_again();
    if (others.empty()) return;
    if (other_->take_over(others)) {
        jobs.erase(first, jobs.end());
        return;
    }
    for (const auto& job : others)
        for (Step& s : job->steps)
            s.unknown(make_error_code(errc::closed));
}

void Worker::process(Jobs jobs) {
    const Jobs questions = take_questions(jobs);
    std::vector<Step*> steps;
    for (const auto& job : jobs)
        for (Step& s : job->steps)
            steps.push_back(&s);
    try {
        if (!steps.empty()) run_steps(connection_, steps);
    } catch (const std::exception&) {
        // Out of memory in the middle.
        connection_.close();
        for (Step* s : steps)
            if (!s->done) s->unknown(make_error_code(errc::unavailable));
    }
    const bool released = std::any_of(steps.begin(), steps.end(),
                                      [](const Step* s) { return s->kind == Step::Kind::release; });
    if (other_) hand_on_refused(jobs);
    deliver(std::move(jobs));
    for (const auto& question : questions) {
        question->ask(connection_);
        deliver(Jobs{question});
    }
    if (released && --until_sweep_ == 0) {
        until_sweep_ = 1024;
        sweep(connection_, boot_clock::now() + std::chrono::seconds(1), sweep_cursor_);
    }
}

}  // namespace holdfast::postgresql
