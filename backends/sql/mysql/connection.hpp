// One blocking connection with our table. Used by one thread at a time; opened on first use, and
// closed at the first sign that it is not to be trusted.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"

namespace holdfast::mysql {

/// The outcome of a packet.
struct Said : sql::Reply {
    std::vector<Result> results;
    unsigned number = 0;  ///< of the error
};

class Connection {
public:
    enum class Resolve : bool { no, yes };
    Connection(std::shared_ptr<Shared>, Resolve);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// For the common worker and lane: nobody else ever uses it, so nothing is locked.
    [[nodiscard]] static std::unique_lock<std::mutex> use() { return {}; }
    Shared& shared() const noexcept { return *shared_; }
    /// Connects unless connected, and makes the table on demand. Errors: connecting, where that is
    /// not done by `deadline`; it is then done for the next call, unless only this caller uses it.
    spi::Failure open(boot_clock::time_point deadline);
    void close() noexcept;

    /// Runs one packet, connecting if necessary. Repeats what conflicts with others until the
    /// deadline. `twice`: it may be sent again on a new connection.
    Said run(const Packet&, boot_clock::time_point deadline, bool twice = false);

private:
    Said once(const Packet&, boot_clock::time_point deadline);
    spi::Failure connect(sql::Server::Opening&, boot_clock::time_point deadline,
                         std::optional<boot_clock::time_point> look_up);
    spi::Failure introduce(boot_clock::time_point deadline);
    spi::Failure judge_server(const Result& hello) const;
    static spi::Failure judge_table(const Result& facts, const std::string& key);
    spi::Failure create(boot_clock::time_point deadline);

    const std::shared_ptr<Shared> shared_;
    const Resolve resolve_;
    sql::Watchdog::Guard guard_;
    std::optional<Session> session_;
    boot_clock::time_point used_;
};

}  // namespace holdfast::mysql
