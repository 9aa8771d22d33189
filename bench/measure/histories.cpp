#include "measure/histories.hpp"

#include <algorithm>
#include <cctype>
#include <ctime>

#include "checker/check.hpp"
#include "checker/recorder.hpp"

namespace holdfast::bench {

namespace {

/// "redis plain" -> "redis-plain"
std::string folder_name(std::string_view backend, std::string_view variant) {
    std::string name(backend);
    if (variant != "default") name.append("-").append(variant);
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
    return name;
}

double thread_cpu_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// Four records, as an uneventful acquisition has them; nanoseconds of CPU for one.
double cost(const std::filesystem::path& file) {
    constexpr int rounds = 2000;
    history::Recorder recorder(file, "cost");
    const auto name = recorder.name("cost");
    const double start = thread_cpu_ns();
    for (std::uint64_t token = 1; token <= rounds; ++token) {
        const auto ticket = recorder.invoked(name);
        recorder.granted(ticket, history::never, token, "0123456789abcdef",
                         history::Previous::none);
        recorder.releasing(ticket, history::never);
        recorder.released(ticket, history::Answer::released);
    }
    return (thread_cpu_ns() - start) / rounds;
}

}  // namespace

std::filesystem::path Histories::file(std::string_view backend, std::string_view variant,
                                      Promise promise, std::string_view who) {
    const std::lock_guard alone(mutex_);
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
        return g.what.backend == backend && g.what.variant == variant;
    });
    if (group == groups_.end()) {
        groups_.push_back({{std::string(backend), std::string(variant), promise},
                           folder_ / folder_name(backend, variant),
                           {}});
        group = std::prev(groups_.end());
        std::filesystem::create_directories(group->folder);
    }
    const auto number = std::to_string(asked_for_++);
    group->files.push_back(group->folder / (number + "-" + std::string(who) + ".history"));
    of_this_try_.push_back(group->files.back());
    return group->files.back();
}

void Histories::forget_unwritten() {
    const std::lock_guard alone(mutex_);
    const auto unwritten = [&](const std::filesystem::path& file) {
        return !std::filesystem::exists(file) &&
               std::find(of_this_try_.begin(), of_this_try_.end(), file) != of_this_try_.end();
    };
    for (Group& group : groups_)
        std::erase_if(group.files, unwritten);
}

void Histories::next_try() {
    const std::lock_guard alone(mutex_);
    of_this_try_.clear();
}

void Histories::judge(Rows& rows) const {
    if (groups_.empty()) return;
    for (const Group& group : groups_)
        for (Row& row : rows_of(group.what, history::check_files(group.files)))
            rows.push_back(std::move(row));
    for (Row& row : blind_spots(rows))
        rows.push_back(std::move(row));
    std::vector<double> costs;
    for (int i = 0; i < 5; ++i) {
        const auto file = folder_ / ("cost-" + std::to_string(i));
        costs.push_back(cost(file));
        std::filesystem::remove(file);
    }
    rows.push_back(cost_row(spread_of(costs)));
}

}  // namespace holdfast::bench
