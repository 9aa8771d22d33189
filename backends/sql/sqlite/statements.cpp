#include "statements.hpp"

#include <array>

#include "../common/one_line.hpp"
#include "sqlite_sql.hpp"

namespace holdfast::sqlite {
namespace {

/// A statement without its text does not compile.
constexpr std::string_view known(Sql s) noexcept {
    switch (s) {
        case Sql::begin:
            return section::begin;
        case Sql::commit:
            return section::commit;
        case Sql::rollback:
            return section::rollback;
        case Sql::look:
            return section::look;
        case Sql::count:
            return section::count;
        case Sql::grant:
            return section::grant;
        case Sql::renew:
            return section::renew;
        case Sql::release:
            return section::release;
        case Sql::write:
            return section::write;
        case Sql::data_version:
            return section::data_version;
        case Sql::list:
            return section::list;
        case Sql::record:
            return section::record;
        case Sql::recorded:
            return section::recorded;
        case Sql::sweep_window:
            return section::sweep_window;
        case Sql::sweep_row:
            return section::sweep_row;
        case Sql::sweep_mark:
            return section::sweep_mark;
        case Sql::count_:
            break;
    }
    return {};
}

}  // namespace

const std::string& text_of(Sql s) noexcept {
    static const auto all = [] {
        std::array<std::string, static_cast<std::size_t>(Sql::count_)> texts;
        for (std::size_t i = 0; i < texts.size(); ++i)
            texts[i] = sql::one_line(known(static_cast<Sql>(i)));
        return texts;
    }();
    return all[static_cast<std::size_t>(s)];
}
[[maybe_unused]] const auto& text_of_at_load = text_of(Sql{});

std::string create_schema() {
    return sql::one_line(section::create_schema);
}

}  // namespace holdfast::sqlite
