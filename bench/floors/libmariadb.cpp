#include "floors/libmariadb.hpp"

namespace holdfast::bench {

MariadbAddress MariadbAddress::of(const lab::MariadbServer& server) {
    return {server.host(), server.port(), "holdfast", "holdfast"};
}

Libmariadb::Libmariadb(const MariadbAddress& at) : connection_(mysql_init(nullptr)) {
    if (mysql_real_connect(get(), at.host.c_str(), at.user.c_str(), nullptr, at.database.c_str(),
                           at.port, nullptr, CLIENT_MULTI_STATEMENTS) == nullptr)
        fail();
}

void Libmariadb::fail() const {
    throw MariadbError(mysql_errno(get()), std::string("bare libmariadb: ") + mysql_error(get()));
}

std::uint64_t Libmariadb::change(const std::string& statements) {
    if (mysql_real_query(get(), statements.data(), statements.size()) != 0) fail();
    std::uint64_t changed = 0;
    for (;;) {
        if (mysql_field_count(get()) != 0) throw SelfCheck("bare libmariadb: rows");
        changed += mysql_affected_rows(get());
        const int next = mysql_next_result(get());
        if (next > 0) fail();
        if (next < 0) return changed;
    }
}

std::string Libmariadb::value(const std::string& query) {
    send(query);
    return answer();
}

void Libmariadb::send(const std::string& query) {
    if (mysql_send_query(get(), query.data(), query.size()) != 0) fail();
}

std::string Libmariadb::answer() {
    if (mysql_read_query_result(get()) != 0) fail();
    const Answer answer = read();
    if (answer.rows.size() != 1) throw SelfCheck("bare libmariadb: not one row");
    return answer.rows[0][0];
}

Libmariadb::Answer Libmariadb::run(const std::string& statement) {
    if (mysql_real_query(get(), statement.data(), statement.size()) != 0) fail();
    return read();
}

Libmariadb::Answer Libmariadb::read() {
    Answer answer;
    const std::unique_ptr<MYSQL_RES, Free> result(mysql_store_result(get()));
    if (!result) {
        if (mysql_field_count(get()) != 0) fail();
        answer.changed = mysql_affected_rows(get());
        return answer;
    }
    while (const MYSQL_ROW fetched = mysql_fetch_row(result.get())) {
        const auto* lengths = mysql_fetch_lengths(result.get());
        auto& row = answer.rows.emplace_back();
        for (unsigned c = 0; c < mysql_num_fields(result.get()); ++c)
            row.push_back(fetched[c] == nullptr ? std::string()
                                                : std::string(fetched[c], lengths[c]));
    }
    return answer;
}

std::string Libmariadb::quoted(const std::string& text) const {
    std::string safe(2 * text.size() + 1, '\0');
    safe.resize(mysql_real_escape_string(get(), safe.data(), text.data(), text.size()));
    return "'" + safe + "'";
}

MariadbStatement::MariadbStatement(const Libmariadb& connection, const std::string& text)
    : statement_(mysql_stmt_init(connection.get())) {
    if (mysql_stmt_prepare(statement_.get(), text.data(), text.size()) != 0) fail();
    if (mysql_stmt_param_count(statement_.get()) != 1)
        throw SelfCheck("bare libmariadb: not one parameter: " + text);
}

void MariadbStatement::fail() const {
    throw MariadbError(mysql_stmt_errno(statement_.get()),
                       std::string("bare libmariadb: ") + mysql_stmt_error(statement_.get()));
}

std::uint64_t MariadbStatement::change(const std::string& parameter) {
    std::string text = parameter;
    MYSQL_BIND bind{};
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = text.data();
    bind.buffer_length = text.size();
    if (mysql_stmt_bind_param(statement_.get(), &bind) != 0) fail();
    if (mysql_stmt_execute(statement_.get()) != 0) fail();
    return mysql_stmt_affected_rows(statement_.get());
}

}  // namespace holdfast::bench
