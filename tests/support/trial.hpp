// A promise to do something in time, tried on a machine that may stand still meanwhile.
#pragma once
#include <chrono>
#include <string_view>

#include "stalls.hpp"

namespace test_support {

/// What came too late while the machine itself stood still proves nothing: the trial is void, which
/// is said, and the whole test is made again, at most three times. What came too late without that
/// is a failure, and so is what comes too late in the last trial. No bound is ever widened, and
/// what else the test asserts has to hold in each trial.
///
///     Trial& trial = this_trial();  // first thing in the test
///     ...
///     trial.within(now() - start, 500ms, "the waiter is told");
class Trial {
public:
    using milliseconds = std::chrono::milliseconds;

    /// Whether there is a trial to make: the first one, and one more after each that was void.
    bool again();
    /// Begins to look for stalls.
    void begin() { stalls_ = {}; }

    /// Asserts that `took` is less than `bound`. False: void, where a stall explains the
    /// difference.
    template <class Rep, class Period>
    bool within(std::chrono::duration<Rep, Period> took, milliseconds bound,
                std::string_view what) {
        return took_less(std::chrono::floor<milliseconds>(took), bound, what);
    }
    /// Asserts what was waited for, or is true unless something took longer than `limit`. False:
    /// void, where a stall was a quarter of that.
    bool holds(bool what_was_asked, milliseconds limit, std::string_view what);

private:
    bool took_less(milliseconds took, milliseconds bound, std::string_view what);
    bool is_void(bool explained);

    Stalls stalls_;
    int made_ = 0;
    bool void_ = false;
};

/// The trial that is the running test. To be called once, before the test's sections.
Trial& this_trial();

}  // namespace test_support
