// Looks up host names for backends. A name server may take half a minute, and the C library's call
// can be neither cancelled nor bounded: so each look-up has a thread of its own that no caller
// waits for longer than he wants to.
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

/// One for each client. Thread-safe. A look-up that nobody waits for any more ends by itself, with
/// its thread, also after this object; a caller that asks for its name meanwhile joins it, so that
/// a name costs one thread at a time. Numeric addresses are their own answer, at once.
class HOLDFAST_EXPORT HostNames {
public:
    using Addresses = std::vector<boost::asio::ip::address>;

    HostNames();
    ~HostNames();
    HostNames(const HostNames&) = delete;
    HostNames& operator=(const HostNames&) = delete;

    /// Looks all of these up at the same time, and waits until each is answered or `deadline`. One
    /// result for each, in their order. Errors: those of getaddrinfo(3) as asio::error has them;
    /// timed_out where there is no answer yet; what starting a thread failed with. The executor
    /// must run one handler at a time. Cancellation: not before the deadline; destroying the
    /// coroutine is fine.
    boost::asio::awaitable<std::vector<result<Addresses>>> look_up(std::vector<std::string> hosts,
                                                                   boot_clock::time_point deadline);
    /// The same for one, blocking.
    result<Addresses> wait_for(const std::string& host, boot_clock::time_point deadline);

    /// One of these errors, for a person.
    static std::string words(const error_code&);

private:
    class LookUp;
    std::shared_ptr<LookUp> begin(const std::string& host);

    std::mutex mutex_;
    std::vector<std::shared_ptr<LookUp>> under_way_;
};

}  // namespace holdfast::spi
