// Every statement of this backend; their texts are in statements.sql and layout.sql. The README
// prints those of an acquire and a release, and a test compares them with what SQLite really ran.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::sqlite {

/// The layout of the tables below. A file with a greater number is refused.
inline constexpr int layout_format = 2;

enum class Sql : std::uint8_t {
    begin,
    commit,
    rollback,
    look,
    count,
    grant,
    renew,
    release,
    write,
    data_version,
    list,
    record,
    recorded,
    sweep_window,
    sweep_row,
    sweep_mark,
    count_
};

/// As it is sent.
const std::string& text_of(Sql) noexcept;

/// What makes the tables.
std::string create_schema();

}  // namespace holdfast::sqlite
