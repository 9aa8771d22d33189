// Bare libpq for the floors: one connection that throws where a floor would no longer be one.
#pragma once
#include <libpq-fe.h>

#include <memory>
#include <span>
#include <string>

namespace holdfast::bench {

/// A connection and its prepared statements. One thread at a time. Errors, everywhere: SelfCheck.
class Libpq {
public:
    explicit Libpq(const std::string& url);
    /// A command that returns no rows.
    void run(const std::string& sql);
    void prepare(const char* name, const char* sql, int parameters = 0);
    /// The one value of a prepared statement.
    std::string value(const char* name);
    /// How many rows a prepared statement changed.
    std::string changed(const char* name, std::span<const char* const> values);
    PGconn* get() const noexcept { return connection_.get(); }

private:
    struct Free {
        void operator()(PGconn* c) const { PQfinish(c); }
        void operator()(PGresult* r) const { PQclear(r); }
    };
    using Result = std::unique_ptr<PGresult, Free>;
    Result expect(PGresult*, ExecStatusType, const char* what) const;

    std::unique_ptr<PGconn, Free> connection_;
};

}  // namespace holdfast::bench
