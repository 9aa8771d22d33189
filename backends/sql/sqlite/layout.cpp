// The tables of a connection: made where there are none, taken over from an older layout, refused
// where they are not ours.
#include "../common/one_line.hpp"
#include "clocks.hpp"
#include "connection.hpp"
#include "errors.hpp"
#include "sqlite_sql.hpp"

namespace holdfast::sqlite {
namespace {

/// An SQLITE_ERROR says that a statement does not fit the tables, which are not ours then.
bool is_failure(int rc) noexcept {
    return rc != SQLITE_OK && (rc & 0xff) != SQLITE_ERROR;
}

}  // namespace

spi::Failure Connection::failed(int rc) {
    auto why = fail(rc);
    if (sqlite3_get_autocommit(db_) == 0) execute("ROLLBACK");
    return why;
}

int Connection::make_tables(std::string& found) {
    int rc = ask("BEGIN IMMEDIATE", found);
    // Another process may have been first.
    if (rc == SQLITE_OK) rc = ask(sql::one_line(section::which_tables).c_str(), found);
    if (rc == SQLITE_OK && found.empty()) {
        rc = execute(create_schema().c_str());
        found = "3";
    }
    return rc == SQLITE_OK ? execute("COMMIT") : rc;
}

int Connection::take_over(std::string& format, std::int64_t& held) {
    int rc = ask("BEGIN IMMEDIATE", format);
    if (rc == SQLITE_OK) rc = ask(sql::one_line(section::which_format).c_str(), format);
    if (rc == SQLITE_OK && format == "1") {
        sqlite3_stmt* s = nullptr;
        const std::string held_in_it = sql::one_line(section::held_in_first_layout);
        rc = sqlite3_prepare_v2(db_, held_in_it.c_str(), -1, &s, nullptr);
        if (rc == SQLITE_OK) {
            Query q(s);
            rc = q.bind(1, boot_us()).bind(2, std::string_view(boot_id())).step();
            held = q.number(0);
            if (rc == SQLITE_ROW) rc = SQLITE_OK;
        }
        sqlite3_finalize(s);
        if (rc == SQLITE_OK && held == 0)
            rc = execute(sql::one_line(section::from_first_layout).c_str());
        if (rc == SQLITE_OK && held == 0) format = std::to_string(layout_format);
    }
    return rc == SQLITE_OK ? execute("COMMIT") : rc;
}

spi::Failure Connection::create_tables() {
    std::string found, format;
    int rc = ask(sql::one_line(section::which_tables).c_str(), found);
    if (rc == SQLITE_OK && found.empty()) rc = make_tables(found);
    if (rc != SQLITE_OK) return failed(rc);
    if (found == "3" || found == "2")
        rc = ask(sql::one_line(section::which_format).c_str(), format);
    std::int64_t held = 0;
    if (rc == SQLITE_OK && format == "1") rc = take_over(format, held);
    if (is_failure(rc)) return failed(rc);
    bool ours = rc == SQLITE_OK && found == "3" && !format.empty();
    if (held > 0)
        return {
            make_error(Finding::older_leases),
            std::to_string(held) + " lease(s) in " + database_->path +
                " are held by programs with an older Holdfast, which could not renew them in the "
                "tables of this version; wait until they end, or use another file"};
    if (ours && format != std::to_string(layout_format))
        return {make_error(Finding::newer_format),
                "the tables in " + database_->path + " have format " + format +
                    ", and this version knows format " + std::to_string(layout_format) +
                    "; use a newer Holdfast, or another file"};
    for (std::size_t i = 0; ours && i < cache_.size(); ++i) {
        const std::string& text = text_of(static_cast<Sql>(i));
        rc = sqlite3_prepare_v3(db_, text.c_str(), static_cast<int>(text.size()),
                                SQLITE_PREPARE_PERSISTENT, &cache_[i], nullptr);
        if (is_failure(rc)) return failed(rc);
        ours = rc == SQLITE_OK;
    }
    if (ours) return {};
    return {make_error(Finding::foreign_table),
            "a table holdfast_lease or holdfast_format in " + database_->path +
                " was not made by Holdfast; choose another file"};
}

}  // namespace holdfast::sqlite
