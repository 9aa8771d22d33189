#include "questions.hpp"

#include <algorithm>

namespace holdfast::mysql {

spi::Answer<spi::Survey> Questions::survey(Connection& c, const std::string& name,
                                           boot_clock::time_point deadline) {
    Table table(c);
    return sql::survey(table, c.shared().options.prefix + name, deadline);
}

spi::Answer<spi::Survey> Questions::tell(Connection& c, const std::string& name,
                                         const HolderFilter& which, spi::Tell what,
                                         boot_clock::time_point deadline) {
    Table table(c);
    return sql::tell(table, c.shared().options.prefix + name, which, what, deadline);
}

spi::Answer<std::vector<std::string>> Questions::list(Connection& c, const std::string& prefix,
                                                      std::size_t limit,
                                                      boot_clock::time_point deadline) {
    const std::string& space = c.shared().options.prefix;
    const std::string begins = space + prefix;
    constexpr std::size_t most = 1'000'000'000;
    const Said said =
        c.run(Packet(Sql::list, {begins, begins, static_cast<std::int64_t>(std::min(limit, most))}),
              deadline, true);
    if (said.failed) return said.failed;
    std::vector<std::string> names;
    for (const auto& row : said.results[0].rows)
        if (row[0].starts_with(space)) names.push_back(row[0].substr(space.size()));
    return names;
}

spi::Answer<std::string> Questions::note(Connection& c, const std::string& name,
                                         const std::optional<std::string>& text,
                                         boot_clock::time_point deadline) {
    const std::string key = c.shared().options.prefix + name;
    const Said said = c.run(
        text ? Packet(Sql::record, {key, sql::record_text(*text)}) : Packet(Sql::recorded, {key}),
        deadline, true);
    if (said.failed) return said.failed;
    if (text) return *text;
    const Result& found = said.results[0];
    return found.rows.empty() ? std::string() : sql::read_record(found.text(0, 0));
}

}  // namespace holdfast::mysql
