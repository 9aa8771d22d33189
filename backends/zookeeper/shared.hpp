// What all parts of one backend share: its options, its counter, core's ear.
#pragma once
#include <atomic>
#include <functional>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/host_names.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "options.hpp"

namespace holdfast::zookeeper {

struct Shared {
    Shared(const spi::Settings& s, spi::Context c)
        : options(s), engine(c.engine), events(&c.events) {}
    const Options options;
    const boost::asio::any_io_executor engine;
    spi::HostNames names;
    spi::BackendEvents* const events;
    std::atomic<std::uint64_t> requests{0};
    spi::net::Gate beats;           ///< a heartbeat was answered, or a session has changed
    std::function<void()> on_beat;  ///< now and then, for what is to be tidied
};

}  // namespace holdfast::zookeeper
