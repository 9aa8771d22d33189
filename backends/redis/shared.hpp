// What all connections of one client share.
#pragma once
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "clock_offset.hpp"
#include "holdfast/spi/host_names.hpp"
#include "options.hpp"

namespace holdfast::redis {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

struct Reply;

/// What else is asked of the server at each connect, and judged before the connection is used.
/// Called by the engine's thread and by those of lanes.
class Greeting {
public:
    virtual ~Greeting() = default;
    /// Appends commands; says how many.
    virtual unsigned ask(std::string& out) = 0;
    /// An error ends the connection.
    virtual error_code answered(unsigned which, const Reply&, std::string& detail) = 0;
};

struct Shared {
    explicit Shared(const spi::Settings& s) : options(s) {}

    const Options options;
    spi::HostNames names;
    ClockOffset clock;
    std::atomic<std::uint64_t> requests{0};  ///< commands sent so far
    Greeting* greeting = nullptr;            ///< outlives every connection; may be null

    /// Where the server was last reached: lanes, which must not wait for a name server, go there.
    /// Thread-safe.
    std::optional<tcp::endpoint> reached() const {
        const std::lock_guard hold(mutex_);
        return reached_;
    }
    void reached(const tcp::endpoint& e) {
        const std::lock_guard hold(mutex_);
        reached_ = e;
    }

private:
    mutable std::mutex mutex_;
    std::optional<tcp::endpoint> reached_;
};

/// Throws boost::system::system_error when a certificate file cannot be used.
std::unique_ptr<asio::ssl::context> make_tls(const Options&);

}  // namespace holdfast::redis
