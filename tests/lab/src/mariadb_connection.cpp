#include "mariadb_connection.hpp"

#include <mysql.h>

#include <memory>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {
namespace {

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

[[noreturn]] void fail(const Connection& connection, const std::string& text = {}) {
    throw LabError("MariaDB: " + (text.empty() ? text : text + ": ") +
                   mysql_error(connection.get()));
}

Connection connect(const std::filesystem::path& socket, const std::string& database) {
    Connection connection(mysql_init(nullptr), &mysql_close);
    const unsigned seconds = 5;
    mysql_options(connection.get(), MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    const unsigned no = 0;
    mysql_options(connection.get(), MYSQL_OPT_LOCAL_INFILE, &no);
    mysql_options(connection.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(connection.get(), nullptr, "root", nullptr, database.c_str(), 0,
                           socket.c_str(), CLIENT_MULTI_STATEMENTS) == nullptr)
        fail(connection);
    return connection;
}

SqlRows rows_of(const Connection& connection, const std::string& text) {
    const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(
        mysql_store_result(connection.get()), &mysql_free_result);
    SqlRows rows(1);
    if (!result) {
        if (mysql_errno(connection.get()) != 0) fail(connection, text);
        return rows;
    }
    const auto columns = mysql_num_fields(result.get());
    for (unsigned c = 0; c < columns; ++c)
        rows[0].emplace_back(mysql_fetch_field_direct(result.get(), c)->name);
    while (const MYSQL_ROW fetched = mysql_fetch_row(result.get())) {
        const auto* lengths = mysql_fetch_lengths(result.get());
        auto& row = rows.emplace_back();
        for (unsigned c = 0; c < columns; ++c)
            row.push_back(fetched[c] == nullptr ? std::string()
                                                : std::string(fetched[c], lengths[c]));
    }
    return rows;
}

}  // namespace

SqlRows run_mariadb(const std::filesystem::path& socket, const std::string& database,
                    const std::string& text) {
    const auto connection = connect(socket, database);
    if (mysql_real_query(connection.get(), text.data(), text.size()) != 0) fail(connection, text);
    for (;;) {
        auto rows = rows_of(connection, text);
        const int next = mysql_next_result(connection.get());
        if (next > 0) fail(connection, text);
        if (next < 0) return rows;
    }
}

}  // namespace holdfast::lab::detail
