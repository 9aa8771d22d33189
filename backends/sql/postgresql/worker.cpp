#include "worker.hpp"

#include <algorithm>
#include <functional>

#include "errors.hpp"

namespace holdfast::postgresql {

/// Jobs that were refused a connection, and so have surely done nothing.
void Worker::answered(Jobs& jobs) {
    if (!other_) return;
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
            s.unknown(errc::closed);
}

}  // namespace holdfast::postgresql
