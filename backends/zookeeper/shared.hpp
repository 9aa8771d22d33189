// Shared by all parts of one backend: options, the counter of requests, the way to core.
#pragma once
#include <atomic>
#include <functional>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/host_names.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "observed.hpp"
#include "options.hpp"

namespace holdfast::zookeeper {

struct Shared {
    Shared(const spi::Settings& s, spi::Context c)
        : options(s), engine(c.engine), events(&c.events), observed(c.events) {}
    const Options options;
    const boost::asio::any_io_executor engine;
    spi::HostNames names;
    spi::BackendEvents* const events;
    std::atomic<std::uint64_t> requests{0};
    spi::net::Gate beats;  ///< opens when a heartbeat was answered or a session has changed
    std::function<void()> on_beat;  ///< called now and then, for clean-up
    Observed observed;
};

}  // namespace holdfast::zookeeper
