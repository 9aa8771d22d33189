#include "statements.hpp"

#include <string_view>
#include <vector>

#include "../common/one_line.hpp"
#include "../common/words.hpp"
#include "postgresql_sql.hpp"

namespace holdfast::postgresql {
namespace {

struct Statement {
    std::string_view text;
    int columns;  ///< of its answer
};

/// A statement without its text does not compile.
constexpr Statement statement(Sql s) noexcept {
    switch (s) {
        case Sql::grant:
            return {section::grant, 3};
        case Sql::release:
            return {section::release, 3};
        case Sql::hand_on:
            return {section::hand_on, 6};
        case Sql::grant_many:
            return {section::grant_many, 4};
        case Sql::release_many:
            return {section::release_many, 3};
        case Sql::ensure:
            return {section::ensure, 0};
        case Sql::stand:
            return {section::stand, 1};
        case Sql::tell:
            return {section::tell, 3};
        case Sql::renew:
            return {section::renew, 2};
        case Sql::withdraw:
            return {section::withdraw, 3};
        case Sql::read:
            return {section::read, 12};
        case Sql::write:
            return {section::write, 3};
        case Sql::write_many:
            return {section::write_many, 3};
        case Sql::grant_free:
            return {section::grant_free, 3};
        case Sql::release_alone:
            return {section::release_alone, 2};
        case Sql::tell_all:
            return {section::tell_all, 2};
        case Sql::echo:
            return {section::echo, 1};
        case Sql::list:
            return {section::list, 1};
        case Sql::record:
            return {section::record, 0};
        case Sql::recorded:
            return {section::recorded, 1};
        case Sql::sweep:
            return {section::sweep, 3};
        case Sql::count_:
            break;
    }
    return {};
}

/// Between two of these marks; each one within is doubled.
std::string in_quotes(std::string_view text, char mark) {
    std::string out(1, mark);
    for (const char c : text) {
        if (c == mark) out += mark;
        out += c;
    }
    return out + mark;
}

/// `origin`: what a server says of where it comes from.
sql::Words words_for(const std::string& table, std::string origin) {
    const std::string literal = in_quotes(table, '\'');
    return sql::Words(
        {
            {"table", table},
            {"literal", literal},
            {"origin", std::move(origin)},
            {"comment", in_quotes(table_format.comment(), '\'')},
            {"place", std::to_string(std::chrono::microseconds(place_lasts).count())},
            {"clock", sql::one_line(section::clock)},
            {"now", sql::one_line(section::now)},
            {"micros", sql::one_line(section::micros)},
            {"sync", sql::one_line(section::sync)},
            {"async", sql::one_line(section::async)},
            {"soon", sql::one_line(section::soon)},
            {"grants", sql::one_line(section::grants)},
            {"all_told", sql::one_line(section::all_told)},
            {"unchanged", sql::one_line(section::unchanged)},
            {"writes", sql::one_line(section::writes)},
        },
        {"table", "literal", "comment"});
}

std::string name_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    std::string name = "holdfast_";
    for (int i = 0; i < 16; ++i, hash >>= 4U)
        name += "0123456789abcdef"[hash & 15U];
    return name;
}

}  // namespace

std::string as_identifier(std::string_view name) {
    return name.empty() ? std::string() : in_quotes(name, '"');
}

int Statements::columns(Sql s) noexcept {
    return statement(s).columns;
}

Statements::Statements(const std::string& schema) {
    const std::string table = (schema.empty() ? "" : schema + ".") + "holdfast_lease";
    const auto words = words_for(table, sql::one_line(section::origin));
    for (std::size_t i = 0; i < texts_.size(); ++i) {
        texts_[i] = words.complete(sql::one_line(statement(static_cast<Sql>(i)).text));
        names_[i] = name_of(texts_[i]);
    }
    create_ = words.complete(section::create.substr(1));  // begins with the file's line end
    hello_ = words.complete(sql::one_line(section::hello));
    plain_hello_ = words_for(table, "NULL, NULL").complete(sql::one_line(section::hello));
    audit_ = words.complete(sql::one_line(section::audit));
    facts_ = words.complete(sql::one_line(section::facts));
}

}  // namespace holdfast::postgresql
