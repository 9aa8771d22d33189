// One blocking connection with our table and our statements, which libpqxx runs.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../common/server_connection.hpp"
#include "session.hpp"
#include "shared.hpp"

namespace holdfast::postgresql {

/// The outcome of one statement.
struct Said : sql::Reply {
    pqxx::result rows;
};

/// What the answer to a statement looks like. A machine on the way to the server can send another
/// one, and libpqxx reads rows and columns that are not there.
struct Shape {
    int columns = 0;  ///< -1: any
    bool one_row = false;
};

/// In the answer to hello; nothing where the server does not say.
std::optional<std::uint32_t> timeline_of(const pqxx::row& hello);

class Connection final : public sql::ServerConnection {
public:
    Connection(std::shared_ptr<Shared>, Resolve);
    ~Connection() override { close(); }

    Shared& shared() const noexcept { return *shared_; }
    bool is_open() const noexcept { return session_ != nullptr; }
    /// Whether a pooler is in between, so that the session is not ours alone.
    bool pooled() const noexcept { return pooled_; }

    /// Runs one statement, connecting if necessary. Repeats statements that conflict with others
    /// until the deadline.
    Said run(Sql, const std::vector<std::string>& parameters, boot_clock::time_point deadline);
    /// The same for a text of our own, without parameters.
    Said run_text(const std::string& sql, boot_clock::time_point deadline, Shape = Shape{-1});

    /// Subscribes to notifications of releases. Not behind a pooler.
    spi::Failure listen(boot_clock::time_point deadline);
    /// The names notified since, without waiting. False: the connection broke.
    bool heard(std::vector<std::string>& names) noexcept;
    /// What that host of the URL says of itself, whether it serves or not: the columns of hello.
    /// The connection is closed before and afterwards.
    Said look_at(std::size_t host, boot_clock::time_point deadline);
    /// Whether a notification that `sender` sends now arrives at this connection, which listens,
    /// within a second.
    spi::Failure hears(Connection& sender, boot_clock::time_point deadline);
    /// A duplicate of the socket; -1 when it is not open.
    int duplicate() const noexcept;

private:
    bool connected() const noexcept override { return is_open(); }
    bool spoken_to() const noexcept override;
    void drop() noexcept override;
    spi::Failure connect_to(const spi::Endpoint& host, const std::string& address,
                            sql::Server::Opening&, const Limits&) override;
    spi::Failure introduce(boot_clock::time_point deadline) override;
    std::string incarnation() const override { return incarnation_; }
    Said hello(boot_clock::time_point deadline);
    spi::Failure judge_server(const pqxx::row& hello);
    template <class F>
    Said guarded(boot_clock::time_point deadline, Shape shape, F&& statement);
    spi::Failure judge_table(const pqxx::row& hello, boot_clock::time_point);
    spi::Failure audit(boot_clock::time_point);
    spi::Failure create(boot_clock::time_point deadline);
    Said once(Sql, const std::vector<std::string>&, boot_clock::time_point deadline);

    const std::shared_ptr<Shared> shared_;
    std::unique_ptr<Session> session_;
    std::shared_ptr<const Statements> statements_;  // for the table that was audited
    std::array<bool, static_cast<std::size_t>(Sql::count_)> prepared_{};
    bool pooled_ = false, listening_ = false;
    int server_process_ = 0;  // the server's, as it says when the session begins
    std::string state_;       // the SQLSTATE of the last error
    std::string incarnation_;
};

/// A PostgreSQL array as text.
class ArrayText {
public:
    void add(std::string_view);
    void add(std::int64_t n);
    std::string take();

private:
    std::string text_ = "{";
};

}  // namespace holdfast::postgresql
