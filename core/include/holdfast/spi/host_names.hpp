// Resolves host names for backends. A look-up may take half a minute, and the C library's call can
// be neither cancelled nor bounded. So each look-up has a thread of its own, and no caller waits
// beyond its deadline.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/export.hpp"

namespace holdfast::spi {

/// One for each client. Thread-safe. A look-up that has lost its callers ends by itself, with its
/// thread, even after this object. A caller that asks for the same name meanwhile joins it, so a
/// name costs one thread at a time. Numeric addresses are answered at once.
class HOLDFAST_EXPORT HostNames {
public:
    using Addresses = std::vector<boost::asio::ip::address>;

    HostNames();
    ~HostNames();
    HostNames(const HostNames&) = delete;
    HostNames& operator=(const HostNames&) = delete;

    /// Resolves all of these at the same time, and waits until each is answered or until
    /// `deadline`. Returns one result for each, in their order. Errors: those of getaddrinfo(3) as
    /// asio::error has them; timed_out (no answer yet); the error of starting a thread. The
    /// executor must run one handler at a time. Not cancellable before the deadline, but the
    /// coroutine may be destroyed.
    boost::asio::awaitable<std::vector<result<Addresses>>> look_up(std::vector<std::string> hosts,
                                                                   boot_clock::time_point deadline);
    /// The same for one host, blocking.
    result<Addresses> wait_for(const std::string& host, boot_clock::time_point deadline);

    /// The text of one of these errors, for people.
    static std::string words(const error_code&);

private:
    class LookUp;
    std::shared_ptr<LookUp> begin(const std::string& host);

    std::mutex mutex_;
    std::vector<std::shared_ptr<LookUp>> under_way_;
};

}  // namespace holdfast::spi
