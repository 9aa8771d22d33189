#include "questions.hpp"

#include <algorithm>

#include "clocks.hpp"
#include "errors.hpp"
#include "steps.hpp"
#include "worker.hpp"

namespace holdfast::sqlite {
namespace {

spi::Failure step_error(Connection& c, int rc) {
    auto failed = c.fail(rc);
    c.rollback();
    return failed;
}

}  // namespace

Capabilities promised() noexcept {
    using enum Capability;
    return {SafetyClass::b,
            {fencing, cross_process, renewal, previous_holder, inspect, list, break_lock,
             survives_client_clock_jump, survives_server_crash, shared, semaphore, downgrade,
             lock_delay, min_hold, release_request}};
}

bool may_lose_commits(int version) noexcept {
    const auto within = [version](int first, int last) {
        return version >= first && version <= last;
    };
    return within(3'007'000, 3'051'002) && !within(3'044'006, 3'044'999) &&
           !within(3'050'007, 3'050'999);
}

spi::Answer<spi::Survey> Questions::survey(Connection& c, const std::string& name,
                                           boot_clock::time_point deadline) {
    if (auto failed = c.open(deadline)) return failed;
    TableRow row;
    const std::string key = c.database().name_prefix + name;
    if (const int rc = look(c, key, row); rc != SQLITE_OK) return step_error(c, rc);
    const auto state = row.state();
    return state ? state->survey() : spi::Survey();
}

spi::Answer<spi::Survey> Questions::tell(Connection& c, const std::string& name,
                                         const HolderFilter& which, spi::Tell what,
                                         boot_clock::time_point deadline) {
    if (auto failed = c.open(deadline)) return failed;
    int rc = c.begin(deadline);
    if (rc != SQLITE_OK) return step_error(c, rc);
    TableRow row;
    const std::string key = c.database().name_prefix + name;
    rc = look(c, key, row);
    if (rc != SQLITE_OK) return step_error(c, rc);
    auto state = row.state();
    spi::Answer<spi::Survey> reached = spi::Failure(make_error(Finding::foreign_row));
    if (row.format != layout_format)
        reached = spi::Failure(make_error(Finding::newer_format));
    else if (state)
        reached = state->tell(which, what);
    if (!reached) {
        c.rollback();
        return reached;
    }
    if (state->changed) rc = write(c, key, row, *state);
    if (rc == SQLITE_OK) rc = c.commit();
    if (rc != SQLITE_OK) return step_error(c, rc);
    if (what == spi::Tell::gone) kick_neighbours(c.file());
    return reached;
}

spi::Answer<std::vector<std::string>> Questions::list(Connection& c, const std::string& prefix,
                                                      std::size_t limit,
                                                      boot_clock::time_point deadline) {
    if (auto failed = c.open(deadline)) return failed;
    const std::string& space = c.database().name_prefix;
    const std::string key = space + prefix;
    std::vector<std::string> names;
    Query q(c.statement(Sql::list));
    q.bind(1, std::string_view(key));
    int rc = SQLITE_DONE;
    // Names that share a prefix stand together, and the prefix itself comes first.
    while (names.size() < limit && (rc = q.step()) == SQLITE_ROW) {
        const std::string_view name = q.text(0);
        if (name.substr(0, key.size()) != key) break;
        if (left_us(q.number(1), q.number(2), boot_us()) <= 0) continue;
        std::string shown(name.substr(space.size()));
        if (names.empty() || names.back() != shown) names.push_back(std::move(shown));
        if (boot_clock::now() >= deadline) {
            rc = SQLITE_BUSY;
            break;
        }
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return step_error(c, rc);
    std::sort(names.begin(), names.end());
    return names;
}

spi::Answer<std::string> Questions::note(Connection& c, const std::string& name,
                                         const std::optional<std::string>& text,
                                         boot_clock::time_point deadline) {
    if (auto failed = c.open(deadline)) return failed;
    const std::string key = c.database().name_prefix + name;
    if (!text) {
        Query q(c.statement(Sql::recorded));
        const int rc = q.bind(1, std::string_view(key)).step();
        if (rc == SQLITE_ROW) return sql::read_record(q.text(0));
        if (rc == SQLITE_DONE) return std::string();
        return step_error(c, rc);
    }
    int rc = c.begin(deadline);
    if (rc != SQLITE_OK) return step_error(c, rc);
    TableRow row;
    rc = look(c, key, row);
    if (rc == SQLITE_OK && row.format != layout_format) {
        c.rollback();
        return make_error(Finding::newer_format);
    }
    if (rc == SQLITE_OK) rc = record(c, key, *text);
    if (rc == SQLITE_OK) rc = c.commit();
    if (rc != SQLITE_OK) return step_error(c, rc);
    return *text;
}

}  // namespace holdfast::sqlite
