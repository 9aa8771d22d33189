#include "faults/sqlite_file.hpp"

#include <sqlite3.h>

namespace holdfast::bench {

bool stays_locked(const Deployment& d, std::chrono::milliseconds cap) {
    constexpr std::string_view scheme = "sqlite://";
    if (d.backend != "sqlite" || !d.open.starts_with(scheme)) return false;
    const auto file = d.open.substr(scheme.size(), d.open.find('?') - scheme.size());
    sqlite3* db = nullptr;
    bool locked = false;
    if (sqlite3_open(file.c_str(), &db) == SQLITE_OK) {
        sqlite3_busy_timeout(db, static_cast<int>(cap.count()));
        locked = sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_BUSY;
    }
    sqlite3_close(db);
    return locked;
}

}  // namespace holdfast::bench
