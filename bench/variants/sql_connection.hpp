// One connection of the documents' SQL recipes, with the words in which the databases differ.
#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench.hpp"
#include "floors/libmariadb.hpp"

namespace holdfast::bench {

/// Somebody else was first: a row with this key is there, or the server ended this transaction for
/// another one. Nothing of the transaction is done.
class SqlRefused : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct SqlAnswer {
    std::vector<std::vector<std::string>> rows;
    std::size_t changed = 0;
};

/// One thread at a time. Errors, everywhere: SqlRefused, other std::exceptions.
class SqlConnection {
public:
    using Values = std::vector<std::string>;

    /// What a statement says differently.
    struct Dialect {
        const char* time_column;  ///< the type of a time, which may be NULL
        const char* now;          ///< the server's time, to the microsecond
        const char* interval;     ///< of `{}` ms
        const char* schema;       ///< where its tables are
        const char* insert_once;  ///< begins an INSERT that does nothing where the row is
        const char* once;         ///< and ends it
    };

    explicit SqlConnection(const Dialect& d) : words(d) {}
    virtual ~SqlConnection() = default;
    /// A `?` is a value. Outside of a transaction each statement is one.
    virtual SqlAnswer run(const std::string& text, const Values& = {}) = 0;
    /// Creates the table, with the name as its key, unless it is there.
    virtual void create_table(const std::string& table, const std::string& columns) = 0;

    const Dialect& words;
};

/// BEGIN; ROLLBACK with the object, unless it is committed before.
class SqlTransaction {
public:
    explicit SqlTransaction(SqlConnection&);
    ~SqlTransaction();
    SqlTransaction(const SqlTransaction&) = delete;
    SqlTransaction& operator=(const SqlTransaction&) = delete;
    void commit();

private:
    SqlConnection& connection_;
    bool open_ = true;
};

/// Connects.
using SqlConnect = std::function<std::unique_ptr<SqlConnection>()>;

/// `how`: as libpq takes it.
SqlConnect postgresql_at(const std::string& how);
SqlConnect mysql_at(const MariadbAddress&);

/// The backends whose databases have the documents' recipes.
inline constexpr const char* sql_backends[] = {"postgresql", "mysql"};
/// To the server of one of them, which must have been started.
SqlConnect sql_server(Site&, std::string_view backend);

}  // namespace holdfast::bench
