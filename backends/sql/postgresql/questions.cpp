#include "questions.hpp"

#include <type_traits>

#include "exchange.hpp"
#include "line.hpp"

namespace holdfast::postgresql {
namespace {

/// What `change` makes of who holds the name, written for good; nothing is where it gives nothing.
template <class Change>
auto changed(Connection& c, const std::string& key, boot_clock::time_point deadline,
             std::string& detail, Change change)
    -> result<std::invoke_result_t<Change, spi::NameState&>> {
    for (;;) {
        NameRows rows;
        Said said = read(c, {key}, deadline, rows);
        detail = std::move(said.detail);
        if (said.error) return said.error;
        const NameRow& row = rows[key];
        auto state = row.state();
        if (!state) return make(Error::foreign_row);
        auto made = change(*state);
        if (made.empty()) return make_error_code(errc::not_held);
        if (!state->changed) return made;
        std::map<std::string, bool, std::less<>> written;
        said =
            write(c, {{key, &row, sql::columns_of(*state, row.columns), deadline, true}}, written);
        detail = std::move(said.detail);
        if (said.error) return said.error;
        if (!written.empty()) return made;
        if (boot_clock::now() >= deadline) return make(Error::no_answer);
    }
}

}  // namespace

result<Inspection> Questions::inspect(Connection& c, const std::string& name,
                                      boot_clock::time_point deadline, std::string& detail) {
    const std::string key = c.shared().options.prefix + name;
    NameRows rows;
    Said said = read(c, {key}, deadline, rows);
    detail = std::move(said.detail);
    if (said.error) return said.error;
    if (const auto state = rows[key].state()) return state->inspect(name);
    Inspection unknown;
    unknown.name = name;
    return unknown;
}

result<std::vector<std::string>> Questions::list(Connection& c, const std::string& prefix,
                                                 std::size_t limit, boot_clock::time_point deadline,
                                                 std::string& detail) {
    const std::string& space = c.shared().options.prefix;
    constexpr std::size_t most = 1'000'000'000;
    Said said = c.run(Sql::list, {space + prefix, std::to_string(std::min(limit, most))}, deadline);
    detail = std::move(said.detail);
    if (said.error) return said.error;
    std::vector<std::string> names;
    for (const auto& row : said.rows)
        if (const auto key = column(row, 0); key.starts_with(space))
            names.emplace_back(key.substr(space.size()));
    return names;
}

result<std::vector<Broken>> Questions::break_lock(Connection& c, const std::string& name,
                                                  const BreakOptions& options,
                                                  boot_clock::time_point deadline,
                                                  std::string& detail) {
    const std::string key = c.shared().options.prefix + name;
    auto broken = changed(c, key, deadline, detail,
                          [&](spi::NameState& state) { return state.break_lock(options, detail); });
    if (!broken || !options.now) return broken;
    tell_all(c, {key}, deadline);
    if (c.shared().line) c.shared().line->freed_elsewhere(key);
    return broken;
}

error_code Questions::record_break(Connection& c, const std::string& name, const std::string& text,
                                   boot_clock::time_point deadline, std::string& detail) {
    Said said =
        c.run(Sql::record, {c.shared().options.prefix + name, sql::record_text(text)}, deadline);
    detail = std::move(said.detail);
    return said.error;
}

result<std::string> Questions::recorded_break(Connection& c, const std::string& name,
                                              boot_clock::time_point deadline,
                                              std::string& detail) {
    Said said = c.run(Sql::recorded, {c.shared().options.prefix + name}, deadline);
    detail = std::move(said.detail);
    if (said.error) return said.error;
    if (said.rows.empty()) return std::string();
    return sql::read_record(column(said.rows[0], 0));
}

result<std::vector<Holder>> Questions::request_release(Connection& c, const std::string& name,
                                                       const HolderFilter& which,
                                                       boot_clock::time_point deadline,
                                                       std::string& detail) {
    return changed(c, c.shared().options.prefix + name, deadline, detail,
                   [&](spi::NameState& state) { return state.request_release(which, detail); });
}

}  // namespace holdfast::postgresql
