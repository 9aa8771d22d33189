#include "statements.hpp"

#include <iterator>

#include "../common/one_line.hpp"
#include "../common/words.hpp"
#include "mysql_sql.hpp"

namespace holdfast::mysql {
namespace {

struct Statement {
    std::string_view text;
    int columns;  ///< of its answer
};

/// In the order of Sql.
constexpr Statement statements[] = {
    {section::grant, 0},
    {section::release, 0},
    {section::renew, 0},
    {section::withdraw, 0},
    {section::ensure, 0},
    {section::read, 12},
    {section::write, 0},
    {section::list, 1},
    {section::record, 0},
    {section::recorded, 1},
    {section::sweep_window, 2},
    {section::sweep, 0},
    {section::settings, 0},
    {section::isolation, 0},
    {section::hello, 7},
    {section::real_time, 0},
    {section::table_facts, 2},
    {section::table_key, 1},
    {section::variables, 2},
    {section::replicas, 1},
    {section::counts, 3},
    {section::connections, 2},
    {section::grants, 1},
    {"BEGIN", 0},
    {"COMMIT", 0},
    {section::create, 0},
};
static_assert(std::size(statements) == static_cast<std::size_t>(Sql::create) + 1);

/// Each text as it is sent, but for its values. Made at load.
const std::vector<std::string> completed = [] {
    const sql::Words words({{"comment", literal(table_format.comment())},
                            {"now", sql::one_line(section::now)},
                            {"day", sql::one_line(section::day)}});
    std::vector<std::string> texts;
    for (const Statement& one : statements)
        texts.push_back(words.complete(sql::one_line(one.text)));
    return texts;
}();

std::string name_of(Sql s) {
    return "holdfast_" + std::to_string(static_cast<int>(s));
}

}  // namespace

std::string literal(const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    std::string out;
    if (const auto* several = std::get_if<std::vector<std::string>>(&value)) {
        for (const std::string& one : *several)
            out += (out.empty() ? "" : ", ") + literal(one);
        return out;
    }
    out = '\'';
    // By Sql::settings a backslash escapes, and no character has several bytes.
    for (const char c : std::get<std::string>(value)) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c == '\0' ? "\\0" : std::string(1, c);
    }
    return out + '\'';
}

const std::string& text_of(Sql s) noexcept {
    return completed[static_cast<std::size_t>(s)];
}

int columns_of(Sql s) noexcept {
    return statements[static_cast<std::size_t>(s)].columns;
}

std::string Packet::text(bool named) const {
    std::string all;
    for (const Filled& one : statements) {
        if (!all.empty()) all += "; ";
        if (named && static_cast<std::size_t>(one.sql) < most_prepared) {
            all += "EXECUTE " + name_of(one.sql);
            for (const Value& value : one.values)
                all += (&value == one.values.data() ? " USING " : ", ") + literal(value);
            continue;
        }
        std::string_view rest = text_of(one.sql);
        for (const Value& value : one.values) {
            const auto mark = rest.find('?');
            all += rest.substr(0, mark);
            all += literal(value);
            rest.remove_prefix(mark + 1);
        }
        all += rest;
    }
    return all;
}

std::string names_prepared() {
    std::string all;
    for (std::size_t i = 0; i < most_prepared; ++i) {
        const auto sql = static_cast<Sql>(i);
        all += (i > 0 ? "; " : "") + ("PREPARE " + name_of(sql)) + " FROM " + literal(text_of(sql));
    }
    return all;
}

std::string create_table() {
    const sql::Words words({{"comment", literal(table_format.comment())}});
    return words.complete(section::create.substr(1));  // begins with the file's line end
}

}  // namespace holdfast::mysql
