// A backend as it is shipped, without core's engine: clients of one name, whose verbs run one after
// another.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "holdfast/spi/config.hpp"
#include "operation.hpp"

namespace oracle {

/// A request that core would repeat was refused or not answered so many times.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One acquisition, with everything that it owns.
struct Acquisition {
    std::string owner;
    spi::Units units;
    hf::milliseconds ttl{}, lock_delay{}, min_hold{};
    bool queue = false;  ///< it waits
    std::shared_ptr<void> place;
    bool asked_before = false;
    hf::FencingToken token;  ///< of its grant
};

class Ground {
public:
    explicit Ground(const std::string& url);
    ~Ground();
    Ground(const Ground&) = delete;
    Ground& operator=(const Ground&) = delete;

    const hf::Capabilities& capabilities() const {
        return clients_.front().backend->capabilities();
    }

    /// The verbs, of a client. What was not answered is repeated, but for attempts. Errors:
    /// Refused.
    spi::Attempt attempt(int client, const std::string& name, Acquisition&, bool lane);
    void withdraw(int client, const std::string& name, Acquisition&);
    spi::Held renew(int client, const std::string& name, Acquisition&);
    spi::Held release(int client, const std::string& name, Acquisition&, bool abandon, bool lane);

    /// The operators' calls.
    spi::Answer<std::vector<hf::Broken>> break_lock(const std::string& name,
                                                    const hf::BreakOptions&);
    spi::Answer<std::vector<hf::Holder>> request_release(const std::string& name,
                                                         const hf::HolderFilter&);
    hf::Inspection inspect(const std::string& name);

    /// Each client uses another name once: it is connected, and knows its servers' clocks.
    void warm_up();
    /// Lets the backend run until it has told this owner to try again. False when it does not.
    bool woken(const std::string& owner);
    bool was_woken(const std::string& owner);
    /// Lets it run for a moment: what it does beside the verbs ends.
    void settle();
    /// Lets it run for so long, where its clock is not moved.
    void rest(hf::milliseconds);

private:
    struct Events final : spi::BackendEvents {
        void wake(std::string_view owner) override;
        void at_risk(std::string_view) override {}
        void lost(std::string_view, hf::error_code) override {}
        void warn(std::string) override {}
        std::mutex mutex;
        std::set<std::string, std::less<>> woken;
    };
    struct Client {
        std::unique_ptr<Events> events = std::make_unique<Events>();
        std::unique_ptr<spi::Backend> backend;
        std::unique_ptr<spi::Lane> lane;
    };
    spi::Attempt next_attempt(const std::string& name, Acquisition&) const;
    spi::Held held(const std::string& name, const Acquisition&) const;
    void repeat(int times, const std::string& why);
    void run(spi::awaitable<void>);
    template <class T>
    T run(spi::awaitable<T>);

    boost::asio::io_context io_;
    std::vector<Client> clients_;
};

}  // namespace oracle
