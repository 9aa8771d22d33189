#include "measure/row.hpp"

namespace holdfast::bench {

namespace {
bool fits(std::string_view wanted, std::string_view is) {
    return wanted.empty() || wanted == is;
}
}  // namespace

bool matches(const Row& row, const Pick& pick) {
    return fits(pick.scenario, row.scenario) && fits(pick.backend, row.backend) &&
           fits(pick.variant, row.variant) && fits(pick.metric, row.metric) &&
           (pick.x < 0 || pick.x == row.x);
}

const Row* find(const Rows& rows, const Pick& pick) {
    for (const Row& row : rows)
        if (matches(row, pick)) return &row;
    return nullptr;
}

std::vector<const Row*> find_all(const Rows& rows, const Pick& pick) {
    std::vector<const Row*> found;
    for (const Row& row : rows)
        if (matches(row, pick)) found.push_back(&row);
    return found;
}

std::string_view to_string(Status status) {
    switch (status) {
        case Status::ok:
            return "ok";
        case Status::failed:
            return "failed";
        case Status::violated:
            return "violated";
    }
    return "?";
}

}  // namespace holdfast::bench
