#include "worker.hpp"

#include <algorithm>

namespace holdfast::postgresql {

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
