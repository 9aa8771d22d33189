// One blocking connection with our table and our statements: used by one thread at a time, opened
// on first use, closed at the first sign that it is not to be trusted.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>

#include "session.hpp"
#include "shared.hpp"

namespace holdfast::postgresql {

/// What became of one statement.
struct Said {
    error_code error;          ///< none: `rows` has the answer
    bool nothing_done = true;  ///< with an error: surely nothing was changed
    std::string detail;        ///< words for the error
    pqxx::result rows;
};

class Connection {
public:
    enum class Resolve : bool { no, yes };
    Connection(std::shared_ptr<Shared>, Resolve);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    Shared& shared() const noexcept { return *shared_; }
    /// Connects unless it is connected, and makes the table on demand; at the latest at `deadline`.
    error_code open(boot_clock::time_point deadline, std::string& detail);
    bool is_open() const noexcept { return session_ != nullptr; }
    /// A pooler stands between: the session is not ours alone.
    bool pooled() const noexcept { return pooled_; }
    /// As the server said when this connection began: a crash of its machine forgets commits.
    bool forgetful() const noexcept { return forgetful_; }
    void close() noexcept;

    /// Runs one statement, connecting where needed. Statements that conflict with others are
    /// repeated until the deadline.
    Said run(Sql, const std::vector<std::string>& parameters, boot_clock::time_point deadline);
    /// The same for a text of our own without parameters.
    Said run_text(const std::string& sql, boot_clock::time_point deadline);

    /// Asks to be notified of releases. Not behind a pooler.
    error_code listen(boot_clock::time_point deadline, std::string& detail);
    /// The names notified since, without waiting. False when the connection broke.
    bool heard(std::vector<std::string>& names) noexcept;
    /// A duplicate of the socket; -1 when it is not open.
    int duplicate() const noexcept;

private:
    template <class F>
    Said guarded(boot_clock::time_point deadline, F&& statement);
    bool stale() const noexcept;
    error_code judge_table(const pqxx::row& hello, boot_clock::time_point, std::string& detail);
    error_code audit(boot_clock::time_point, std::string& detail);
    error_code introduce(boot_clock::time_point deadline, std::string& detail);
    error_code create(boot_clock::time_point deadline, std::string& detail);
    Said once(Sql, const std::vector<std::string>&, boot_clock::time_point deadline);

    const std::shared_ptr<Shared> shared_;
    const Resolve resolve_;
    Watchdog::Guard guard_;
    std::unique_ptr<Session> session_;
    std::shared_ptr<const Statements> statements_;  // for the table that was judged
    std::array<bool, static_cast<std::size_t>(Sql::count_)> prepared_{};
    bool pooled_ = false, forgetful_ = false, listening_ = false;
    boot_clock::time_point used_;
    std::string state_;  // the SQLSTATE of the last error
};

/// An array of PostgreSQL's as text.
class ArrayText {
public:
    void add(std::string_view);
    void add(std::int64_t n);
    std::string take();

private:
    std::string text_ = "{";
};

}  // namespace holdfast::postgresql
