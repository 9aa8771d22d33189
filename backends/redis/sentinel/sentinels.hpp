// The Sentinels that a URL lists: where the primary is, since when that is certain, and that it has
// moved.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../options.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "sentinel.hpp"

namespace holdfast::redis {

/// Engine thread only. Asks all of them at once: before each connection, at each message of a
/// switch, and every third of the ttl from the first connection to close().
class Sentinels final : public Where, public std::enable_shared_from_this<Sentinels> {
public:
    struct Listener {
        /// Connections to `from` are not to be used any more. Server::moved() was called.
        std::function<void(const std::string& from, const std::string& to)> moved;
        std::function<void(std::string)> warn;
    };
    /// `server`: whose place they know; it keeps moves and confirmations.
    Sentinels(asio::any_io_executor, const spi::Settings&, std::weak_ptr<Server> server,
              tls::Context*, Listener);

    asio::awaitable<spi::Answer<Location>> find(boot_clock::time_point deadline) override;
    std::string unanswered() const override;
    spi::Failure judged(spi::Failure) const override;

    /// Asks again, and returns when a majority has confirmed the server as it is at `move`, when
    /// none is left to answer, or at `deadline`.
    asio::awaitable<void> confirm(unsigned move, boot_clock::time_point deadline);
    /// Asks again, and returns when that is `enough`, when none is left to answer, or at
    /// `deadline`.
    asio::awaitable<void> ask_until(boot_clock::time_point deadline, std::function<bool()> enough);
    /// Why nothing is confirmed, for people.
    spi::Failure doubt() const;
    const std::vector<std::shared_ptr<Sentinel>>& all() const noexcept { return all_; }
    void close() noexcept;

private:
    std::size_t answered_since(boot_clock::time_point) const noexcept;
    bool most_answered_since(boot_clock::time_point) const noexcept;
    bool any_asked() const noexcept;
    void ask();
    void start();
    asio::awaitable<void> watch();
    /// What they say now; follows the primary.
    void judge();
    spi::Failure none() const;

    asio::any_io_executor executor_;
    std::weak_ptr<Server> server_;
    Listener listener_;
    const std::string name_;
    const milliseconds interval_, patience_;
    spi::HostNames names_;
    std::vector<std::shared_ptr<Sentinel>> all_;
    std::optional<spi::Endpoint> current_;
    spi::net::Gate gate_;
    asio::steady_timer pause_;
    bool watching_ = false, hurry_ = false, closed_ = false;
};

}  // namespace holdfast::redis
