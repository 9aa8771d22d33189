// Shared by all parts of one backend: options, the counter of requests, the way to core.
#pragma once
#include <atomic>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/host_names.hpp"
#include "options.hpp"

namespace holdfast::etcd {

namespace asio = boost::asio;
template <class T>
using awaitable = asio::awaitable<T>;

struct Shared {
    Shared(const spi::Settings& s, spi::Context c)
        : options(s), engine(c.engine), events(&c.events) {}
    /// For one member alone.
    Shared(const Shared& all, const spi::Endpoint& one)
        : options([&] {
              Options o = all.options;
              o.hosts = {one};
              return o;
          }()),
          engine(all.engine),
          events(all.events) {}
    const Options options;
    const asio::any_io_executor engine;
    spi::HostNames names;
    spi::BackendEvents* const events;
    std::atomic<std::uint64_t> requests{0};
};

}  // namespace holdfast::etcd
