#include "measure/histories.hpp"

#include <algorithm>
#include <cctype>
#include <exception>

#include "checker/check.hpp"
#include "checker/recorder.hpp"
#include "measure/latency.hpp"

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

/// Four records, as an uneventful acquisition has them; nanoseconds for one.
double cost(const std::filesystem::path& file) {
    constexpr int rounds = 2000;
    history::Recorder recorder(file, "cost");
    const auto name = recorder.name("cost");
    const auto start = Clock::now();
    for (std::uint64_t token = 1; token <= rounds; ++token) {
        const auto ticket = recorder.invoked(name);
        recorder.granted(ticket, history::never, token, "0123456789abcdef",
                         history::Previous::none);
        recorder.releasing(ticket, history::never);
        recorder.released(ticket, history::Answer::released);
    }
    return seconds_since(start) / rounds * 1e9;
}

}  // namespace

std::filesystem::path Histories::file(std::string_view backend, std::string_view variant,
                                      Promise promise, std::string_view who) {
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
    const auto number = std::to_string(group->files.size());
    group->files.push_back(group->folder / (number + "-" + std::string(who) + ".history"));
    return group->files.back();
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
