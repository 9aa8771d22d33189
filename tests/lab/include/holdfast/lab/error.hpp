// The one exception of the lab: a server that is missing or does not start must end a test run
// loudly, so nothing in the lab is reported by a value that a test could forget to look at.
#pragma once

#include <stdexcept>

namespace holdfast::lab {

/// Says what the lab could not do, with the command and the last log lines where there are any.
class LabError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace holdfast::lab
