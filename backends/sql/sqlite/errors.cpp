#include "errors.hpp"

#include <sqlite3.h>

#include "holdfast/spi/net/category.hpp"

namespace holdfast::sqlite {
namespace {

using boost::system::error_condition;

const char* words(Finding f) noexcept {
    switch (f) {
        case Finding::missing_folder:
            return "the directory of the database file does not exist";
        case Finding::no_permission:
            return "no permission to read and write the database file";
        case Finding::network_file_system:
            return "the file system is not known to be local";
        case Finding::linked_twice:
            return "the database file has more than one hard link";
        case Finding::mounted_alone:
            return "the database file is mounted without its directory";
        case Finding::not_private:
            return "the database file could be replaced by another user";
        case Finding::not_a_file:
            return "the path is not a file";
        case Finding::no_wal:
            return "the file cannot be switched to write-ahead logging";
        case Finding::newer_format:
            return "the tables were made by a newer version of Holdfast";
        case Finding::foreign_table:
            return "the table of that name in the database belongs to another program";
        case Finding::foreign_row:
            return "the row of that name is not an exclusive lock";
        case Finding::replaced:
            return "the database file was replaced or deleted";
        case Finding::older_leases:
            return "an older version of Holdfast still holds leases in the database";
        case Finding::unknown_clock:
            return "the machine's boot time cannot be determined";
        case Finding::bad_deadline:
            return "the deadline had passed before the request began";
        case Finding::hung:
            return "the disk did not answer within the request time-out";
        case Finding::forked_inside:
            return "a thread of the parent process was inside SQLite at the fork, so this process "
                   "cannot use it: let it execute another program";
    }
    return "unknown finding";
}

errc condition_of(Finding f) noexcept {
    switch (f) {
        case Finding::no_permission:
        case Finding::not_private:
            return errc::denied;
        case Finding::foreign_table:
        case Finding::foreign_row:
            return errc::kind_mismatch;
        case Finding::replaced:
            return errc::lost;
        case Finding::older_leases:
        case Finding::bad_deadline:
        case Finding::hung:
        case Finding::forked_inside:
            return errc::unavailable;
        default:
            return errc::bad_config;
    }
}

// The base has no virtual destructor, and its instances are never deleted.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast.sqlite"; }
    std::string message(int v) const override {
        if (v >= static_cast<int>(Finding::missing_folder)) return words(static_cast<Finding>(v));
        return sqlite3_errstr(v);
    }
    error_condition default_error_condition(int v) const noexcept override {
        if (v >= static_cast<int>(Finding::missing_folder))
            return make_error_condition(condition_of(static_cast<Finding>(v)));
        switch (v & 0xff) {
            case SQLITE_READONLY:
            case SQLITE_PERM:
            case SQLITE_AUTH:
                return make_error_condition(errc::denied);
            case SQLITE_CORRUPT:
            case SQLITE_NOTADB:
                return make_error_condition(errc::bad_config);
            default:
                return make_error_condition(errc::unavailable);
        }
    }
    // A file has no server that might not run.
    bool equivalent(int v, const error_condition& condition) const noexcept override {
        const error_condition own = default_error_condition(v);
        return condition == own || (condition == spi::net::answered() && own == errc::unavailable);
    }
};
#pragma GCC diagnostic pop

}  // namespace

const boost::system::error_category& category() noexcept {
    static constinit const Category instance;
    return instance;
}

error_code make_error(int sqlite_code) noexcept {
    return {sqlite_code, category()};
}

error_code make_error(Finding f) noexcept {
    return {static_cast<int>(f), category()};
}

}  // namespace holdfast::sqlite
