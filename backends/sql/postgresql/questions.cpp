#include "questions.hpp"

#include "exchange.hpp"
#include "waiters.hpp"

namespace holdfast::postgresql {

spi::Answer<spi::Survey> Questions::survey(Connection& c, const std::string& name,
                                           boot_clock::time_point deadline) {
    Table table(c);
    return sql::survey(table, c.shared().options.prefix + name, deadline);
}

spi::Answer<spi::Survey> Questions::tell(Connection& c, const std::string& name,
                                         const HolderFilter& which, spi::Tell what,
                                         boot_clock::time_point deadline) {
    const std::string key = c.shared().options.prefix + name;
    Table table(c);
    auto reached = sql::tell(table, key, which, what, deadline);
    if (reached && what == spi::Tell::gone && c.shared().waiters)
        c.shared().waiters->freed_elsewhere(key);
    return reached;
}

spi::Answer<std::vector<std::string>> Questions::list(Connection& c, const std::string& prefix,
                                                      std::size_t limit,
                                                      boot_clock::time_point deadline) {
    const std::string& space = c.shared().options.prefix;
    constexpr std::size_t most = 1'000'000'000;
    Said said = c.run(Sql::list, {space + prefix, std::to_string(std::min(limit, most))}, deadline);
    if (said.failed) return said.failed;
    std::vector<std::string> names;
    for (const auto& row : said.rows)
        if (const auto key = column(row, 0); key.starts_with(space))
            names.emplace_back(key.substr(space.size()));
    return names;
}

spi::Answer<std::string> Questions::note(Connection& c, const std::string& name,
                                         const std::optional<std::string>& text,
                                         boot_clock::time_point deadline) {
    const std::string key = c.shared().options.prefix + name;
    Said said = text ? c.run(Sql::record, {key, sql::record_text(*text)}, deadline)
                     : c.run(Sql::recorded, {key}, deadline);
    if (said.failed) return said.failed;
    if (text) return *text;
    return said.rows.empty() ? std::string() : sql::read_record(column(said.rows[0], 0));
}

}  // namespace holdfast::postgresql
