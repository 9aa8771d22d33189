#include "answers.hpp"

#include <fmt/format.h>

#include <string>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {

void wait_for_answer(Process& process, const char* program, const std::function<void()>& ask,
                     std::chrono::nanoseconds cap) {
    std::string last;
    bool answered = false;
    const auto done = [&] {
        if (!process.alive()) {
            last = "it has ended";
            return true;
        }
        try {
            ask();
            answered = true;
        } catch (const LabError& error) {
            last = error.what();
        }
        return answered;
    };
    if (!reached(done, cap) || !answered)
        throw LabError(fmt::format("{} does not answer ({})\n  command: {}\n  log:\n{}", program,
                                   last, process.command_line(), process.log_tail()));
}

}  // namespace holdfast::lab::detail
