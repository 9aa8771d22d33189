#include "variants/sql_connection.hpp"

#include <fmt/format.h>

#include <pqxx/pqxx>

namespace holdfast::bench {

namespace {

class Postgresql final : public SqlConnection {
public:
    explicit Postgresql(const std::string& how) : SqlConnection(dialect), connection_(how) {}

    SqlAnswer run(const std::string& text, const Values& values) override {
        std::string numbered;
        int number = 0;
        for (const char c : text)
            if (c == '?')
                numbered += '$' + std::to_string(++number);
            else
                numbered += c;
        try {
            pqxx::nontransaction alone(connection_);  // BEGIN and COMMIT are statements here
            // What libpqxx 7.10 has in place of both, 6.4 lacks.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
            const auto result =
                alone.exec_params(numbered, pqxx::prepare::make_dynamic_params(values));
#pragma GCC diagnostic pop
            SqlAnswer answer;
            answer.changed = static_cast<std::size_t>(result.affected_rows());
            for (const auto& row : result) {
                auto& to = answer.rows.emplace_back();
                for (const auto& field : row)
                    to.emplace_back(field.c_str());
            }
            return answer;
        } catch (const pqxx::unique_violation& error) {
            throw SqlRefused(error.what());
        }
    }

    void create_table(const std::string& table, const std::string& columns) override {
        SqlTransaction all(*this);
        run("SELECT pg_advisory_xact_lock(1)", {});  // two clients may create it at once
        run(fmt::format("CREATE TABLE IF NOT EXISTS {} (name text PRIMARY KEY, {})", table,
                        columns),
            {});
        all.commit();
    }

private:
    static constexpr Dialect dialect{.time_column = "timestamptz",
                                     .now = "clock_timestamp()",
                                     .interval = "{} * interval '1 ms'",
                                     .schema = "current_schema()",
                                     .insert_once = "INSERT INTO",
                                     .once = "ON CONFLICT DO NOTHING"};

    pqxx::connection connection_;
};

class Mysql final : public SqlConnection {
public:
    explicit Mysql(const MariadbAddress& at) : SqlConnection(dialect), connection_(at) {}

    SqlAnswer run(const std::string& text, const Values& values) override {
        std::string filled;
        auto next = values.begin();
        for (const char c : text)
            if (c == '?')
                filled += connection_.quoted(*next++);
            else
                filled += c;
        try {
            auto answer = connection_.run(filled);
            return {std::move(answer.rows), answer.changed};
        } catch (const MariadbError& error) {
            constexpr unsigned duplicate = 1062, deadlock = 1213;
            if (error.number != duplicate && error.number != deadlock) throw;
            throw SqlRefused(error.what());
        }
    }

    void create_table(const std::string& table, const std::string& columns) override {
        run(fmt::format("CREATE TABLE IF NOT EXISTS {} (name varchar(255) PRIMARY KEY, {}) "
                        "ENGINE = InnoDB",
                        table, columns),
            {});
    }

private:
    static constexpr Dialect dialect{.time_column = "timestamp(6) NULL",
                                     .now = "SYSDATE(6)",
                                     .interval = "INTERVAL {} * 1000 MICROSECOND",
                                     .schema = "DATABASE()",
                                     .insert_once = "INSERT IGNORE INTO",
                                     .once = ""};

    Libmariadb connection_;
};

}  // namespace

SqlTransaction::SqlTransaction(SqlConnection& connection) : connection_(connection) {
    connection_.run("BEGIN");
}

SqlTransaction::~SqlTransaction() {
    if (!open_) return;
    try {
        connection_.run("ROLLBACK");
    } catch (const std::exception&) {
        // The connection is broken, and the next statement says so.
    }
}

void SqlTransaction::commit() {
    connection_.run("COMMIT");
    open_ = false;
}

SqlConnect postgresql_at(const std::string& how) {
    return [how] { return std::make_unique<Postgresql>(how); };
}

SqlConnect mysql_at(const MariadbAddress& at) {
    return [at] { return std::make_unique<Mysql>(at); };
}

SqlConnect sql_server(Site& site, std::string_view backend) {
    return backend == "mysql" ? mysql_at(MariadbAddress::of(*site.mysql()))
                              : postgresql_at(site.postgresql()->url());
}

}  // namespace holdfast::bench
