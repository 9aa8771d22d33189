// Bare libmariadb for the floors: one connection that throws where a floor would no longer be one.
#pragma once
#include <mysql.h>

#include <cstdint>
#include <holdfast/lab/mariadb_server.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench.hpp"

namespace holdfast::bench {

/// The address of a server, and the user; without a password.
struct MariadbAddress {
    std::string host;
    std::uint16_t port = 0;
    std::string user, database;

    static MariadbAddress of(const lab::MariadbServer&);
};

class MariadbError : public SelfCheck {
public:
    MariadbError(unsigned its, const std::string& words) : SelfCheck(words), number(its) {}
    unsigned number;  ///< the server's or the library's
};

/// A connection, which blocks. One thread at a time. The session is as the server makes it. Errors,
/// everywhere: MariadbError, or SelfCheck for an answer of another form.
class Libmariadb {
public:
    struct Answer {
        std::vector<std::vector<std::string>> rows;  ///< NULL is an empty text
        std::uint64_t changed = 0;
    };

    explicit Libmariadb(const MariadbAddress&);
    /// Statements without rows, in one packet. How many rows they changed together.
    std::uint64_t change(const std::string& statements);
    /// One statement, with rows or without.
    Answer run(const std::string& statement);
    /// The one value of a query.
    std::string value(const std::string& query);
    /// The same in two steps: what blocks is the second one, unless the socket is readable.
    void send(const std::string& query);
    std::string answer();
    int socket() const { return static_cast<int>(mysql_get_socket(get())); }
    /// As a literal in a statement.
    std::string quoted(const std::string& text) const;
    MYSQL* get() const noexcept { return connection_.get(); }

private:
    struct Free {
        void operator()(MYSQL* c) const { mysql_close(c); }
        void operator()(MYSQL_RES* r) const { mysql_free_result(r); }
    };
    [[noreturn]] void fail() const;
    Answer read();

    std::unique_ptr<MYSQL, Free> connection_;
};

/// A prepared statement with one text as its parameter. Errors, everywhere: SelfCheck.
class MariadbStatement {
public:
    MariadbStatement(const Libmariadb&, const std::string& text);
    /// How many rows it changed.
    std::uint64_t change(const std::string& parameter);

private:
    struct Free {
        void operator()(MYSQL_STMT* s) const { mysql_stmt_close(s); }
    };
    [[noreturn]] void fail() const;

    std::unique_ptr<MYSQL_STMT, Free> statement_;
};

}  // namespace holdfast::bench
