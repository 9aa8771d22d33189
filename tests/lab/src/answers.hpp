// Waiting for a program that was started until it answers.
#pragma once

#include <chrono>
#include <functional>

#include "holdfast/lab/process.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab::detail {

/// Asks until that throws no LabError any more. Errors: LabError when the program has ended or
/// `cap` has passed, with what was wrong last, the command and the end of the log.
void wait_for_answer(Process& process, const char* program, const std::function<void()>& ask,
                     std::chrono::nanoseconds cap = default_cap);

}  // namespace holdfast::lab::detail
