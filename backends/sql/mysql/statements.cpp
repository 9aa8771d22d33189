#include "statements.hpp"

#include "../common/one_line.hpp"
#include "../common/words.hpp"
#include "mysql_sql.hpp"

namespace holdfast::mysql {
namespace {

struct Statement {
    std::string_view text;
    int columns;  ///< of its answer
};

/// A statement without its text does not compile.
constexpr Statement statement(Sql s) noexcept {
    switch (s) {
        case Sql::grant:
            return {section::grant, 0};
        case Sql::release:
            return {section::release, 0};
        case Sql::renew:
            return {section::renew, 0};
        case Sql::ensure:
            return {section::ensure, 0};
        case Sql::read:
            return {section::read, 12};
        case Sql::write:
            return {section::write, 0};
        case Sql::list:
            return {section::list, 1};
        case Sql::record:
            return {section::record, 0};
        case Sql::recorded:
            return {section::recorded, 1};
        case Sql::sweep_window:
            return {section::sweep_window, 2};
        case Sql::sweep:
            return {section::sweep, 0};
        case Sql::settings:
            return {section::settings, 0};
        case Sql::isolation:
            return {section::isolation, 0};
        case Sql::hello:
            return {section::hello, 6};
        case Sql::real_time:
            return {section::real_time, 0};
        case Sql::table_facts:
            return {section::table_facts, 2};
        case Sql::table_key:
            return {section::table_key, 1};
        case Sql::variables:
            return {section::variables, 2};
        case Sql::replicas:
            return {section::replicas, 1};
        case Sql::counts:
            return {section::counts, 3};
        case Sql::connections:
            return {section::connections, 2};
        case Sql::grants:
            return {section::grants, 1};
        case Sql::begin:
            return {"BEGIN", 0};
        case Sql::commit:
            return {"COMMIT", 0};
        case Sql::rollback:
            return {"ROLLBACK", 0};
        case Sql::create:
            return {section::create, 0};
    }
    return {};
}

/// Each text as it is sent, but for its values. Made at load.
const std::vector<std::string> completed = [] {
    const sql::Words words({{"comment", Value(table_comment()).text()},
                            {"now", sql::one_line(section::now)},
                            {"day", sql::one_line(section::day)}});
    std::vector<std::string> texts;
    for (int i = 0; i <= static_cast<int>(Sql::create); ++i)
        texts.push_back(words.complete(sql::one_line(statement(static_cast<Sql>(i)).text)));
    return texts;
}();

}  // namespace

std::string table_comment() {
    return std::string(comment_before_format) + std::to_string(table_format);
}

Value::Value(std::string_view text) : text_("'") {
    // The session's sql_mode lets a backslash escape; its character set has no longer characters.
    for (const char c : text) {
        if (c == '\'' || c == '\\') text_ += '\\';
        text_ += c == '\0' ? "\\0" : std::string(1, c);
    }
    text_ += '\'';
}

Value::Value(const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
        text_ += (text_.empty() ? "" : ", ") + Value(text).text();
}

void Packet::add(Sql s, std::initializer_list<Value> values) {
    if (!text.empty()) text += "; ";
    std::string_view rest = completed[static_cast<std::size_t>(s)];
    for (const Value& value : values) {
        const auto mark = rest.find('?');
        text += rest.substr(0, mark);
        text += value.text();
        rest.remove_prefix(mark + 1);
    }
    text += rest;
    columns.push_back(statement(s).columns);
}

std::string create_table() {
    const sql::Words words({{"comment", Value(table_comment()).text()}});
    return words.complete(section::create.substr(1));  // begins with the file's line end
}

}  // namespace holdfast::mysql
