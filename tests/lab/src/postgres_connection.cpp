#include "postgres_connection.hpp"

#include <libpq-fe.h>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {

SqlRows run_sql(const std::string& conninfo, const std::string& sql) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(conninfo.c_str()),
                                                                  &PQfinish);
    if (PQstatus(connection.get()) != CONNECTION_OK)
        throw LabError(std::string("PostgreSQL: ") + PQerrorMessage(connection.get()));
    PQsetNoticeProcessor(
        connection.get(), [](void*, const char*) {}, nullptr);
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection.get(), sql.c_str()), &PQclear);
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        throw LabError("PostgreSQL: " + sql + ": " + PQerrorMessage(connection.get()));
    SqlRows rows;
    for (int r = 0; r < PQntuples(result.get()); ++r) {
        auto& row = rows.emplace_back();
        for (int c = 0; c < PQnfields(result.get()); ++c)
            row.emplace_back(PQgetvalue(result.get(), r, c));
    }
    return rows;
}

}  // namespace holdfast::lab::detail
