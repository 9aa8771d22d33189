#include "floors/libpq.hpp"

#include "bench.hpp"

namespace holdfast::bench {

Libpq::Libpq(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(get()) != CONNECTION_OK)
        throw SelfCheck(std::string("bare libpq: ") + PQerrorMessage(get()));
}

Libpq::Result Libpq::expect(PGresult* answer, ExecStatusType status, const char* what) const {
    Result result(answer);
    if (PQresultStatus(answer) != status)
        throw SelfCheck(std::string("bare libpq: ") + what + ": " + PQerrorMessage(get()));
    return result;
}

void Libpq::run(const std::string& sql) {
    expect(PQexec(get(), sql.c_str()), PGRES_COMMAND_OK, sql.c_str());
}

void Libpq::prepare(const char* name, const char* sql, int parameters) {
    expect(PQprepare(get(), name, sql, parameters, nullptr), PGRES_COMMAND_OK, name);
}

std::string Libpq::value(const char* name) {
    const Result result =
        expect(PQexecPrepared(get(), name, 0, nullptr, nullptr, nullptr, 0), PGRES_TUPLES_OK, name);
    if (PQntuples(result.get()) != 1)
        throw SelfCheck(std::string("bare libpq: not one row: ") + name);
    return PQgetvalue(result.get(), 0, 0);
}

std::string Libpq::changed(const char* name, std::span<const char* const> values) {
    const Result result = expect(PQexecPrepared(get(), name, static_cast<int>(values.size()),
                                                values.data(), nullptr, nullptr, 0),
                                 PGRES_COMMAND_OK, name);
    return PQcmdTuples(result.get());
}

}  // namespace holdfast::bench
