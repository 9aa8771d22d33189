// A table that refuses the write of a holder whose lock went to somebody else while it was paused.
//   fenced_store_sql LOCK-URL STORE.db
#include <sqlite3.h>

#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

class Orders {
public:
    explicit Orders(const char* file) {
        sqlite3* db = nullptr;
        const int opened = sqlite3_open(file, &db);
        db_.reset(db);
        if (opened != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db));
        sqlite3_busy_timeout(db, 5000);
        const char* schema =
            "CREATE TABLE IF NOT EXISTS orders"
            " (id INTEGER PRIMARY KEY, state TEXT NOT NULL, fence INTEGER NOT NULL);"
            "INSERT OR IGNORE INTO orders VALUES (42, 'new', 0)";
        if (sqlite3_exec(db, schema, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(db));
    }

    /// False: a later holder has written already. The comparison and the write are one statement.
    bool set_state(const std::string& state, holdfast::FencingToken token) {
        const char* sql = "UPDATE orders SET state = ?1, fence = ?2 WHERE id = 42 AND fence <= ?2";
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(db_.get(), sql, -1, &statement, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(db_.get()));
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owned(statement,
                                                                          sqlite3_finalize);
        sqlite3_bind_text(statement, 1, state.c_str(), -1, SQLITE_TRANSIENT);
        // SQLite's integers have a sign; a token from 2^63 on, which no clock reaches, is refused.
        sqlite3_bind_int64(statement, 2, static_cast<sqlite3_int64>(token.value));
        if (sqlite3_step(statement) != SQLITE_DONE)
            throw std::runtime_error(sqlite3_errmsg(db_.get()));
        return sqlite3_changes(db_.get()) == 1;
    }

private:
    std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_{nullptr, sqlite3_close};
};

void write(Orders& orders, const char* who, const char* state, const holdfast::Lease& lease) {
    const bool accepted = orders.set_state(state, lease.fencing_token());
    std::cout << who << " writes '" << state << "' with token " << lease.fencing_token().value
              << (accepted ? ": accepted\n" : ": refused\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: fenced_store_sql LOCK-URL STORE.db\n";
        return 64;
    }
    auto client = holdfast::Client::open(argv[1]).value();
    auto lock = client.make_lock("orders/42").value();
    Orders orders(argv[2]);

    auto first = lock->acquire().value();
    write(orders, "the first holder", "packed", first);
    // Stands for a pause of the first holder: its lock ends, and the next one is granted.
    client.break_lock("orders/42", {.now = true}).value();
    auto second = lock->acquire().value();
    write(orders, "the second holder", "paid", second);
    write(orders, "the first holder, late,", "cancelled", first);
    write(orders, "the second holder", "sent", second);
    return 0;
}
