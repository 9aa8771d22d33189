// One blocking connection with our table: what is asked of a server that is met, and packets that
// are repeated where that can help.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../common/server_connection.hpp"
#include "session.hpp"

namespace holdfast::mysql {

/// The outcome of a packet.
struct Said : sql::Reply {
    std::vector<Result> results;
    unsigned number = 0;  ///< of the error
};

class Connection final : public sql::ServerConnection {
public:
    Connection(std::shared_ptr<Shared>, Resolve);
    ~Connection() override { close(); }

    Shared& shared() const noexcept { return *shared_; }
    /// Runs one packet, connecting if necessary. Repeats what conflicts with others until the
    /// deadline. `twice`: it may be sent again on a new connection.
    Said run(const Packet&, boot_clock::time_point deadline, bool twice = false);

private:
    bool connected() const noexcept override { return session_.has_value(); }
    bool spoken_to() const noexcept override;
    void drop() noexcept override { session_.reset(); }
    spi::Failure no_spare() const override;
    spi::Failure connect_to(const spi::Endpoint&, const std::string& address, sql::Server::Opening&,
                            const Limits&) override;
    spi::Failure introduce(boot_clock::time_point deadline) override;
    Said once(const Packet&, boot_clock::time_point deadline);
    spi::Failure judge_server(const Result& hello) const;
    static spi::Failure judge_table(const Result& facts, const std::string& key);
    spi::Failure create(boot_clock::time_point deadline);

    const std::shared_ptr<Shared> shared_;
    std::optional<Session> session_;
    std::uint64_t session_id_ = 0;
};

}  // namespace holdfast::mysql
