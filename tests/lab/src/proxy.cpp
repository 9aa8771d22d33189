// The face of the proxy: every call is carried to the engine's thread and waited for, so that a
// fault is in place when the call returns and the counters of one call belong to one moment.
#include "holdfast/lab/proxy.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "proxy_engine.hpp"

namespace holdfast::lab {
namespace {

namespace asio = boost::asio;

detail::Tcp::endpoint resolved(asio::io_context& context, const std::string& host,
                               std::uint16_t port) {
    boost::system::error_code error;
    detail::Tcp::resolver resolver(context);
    const auto found = resolver.resolve(host, std::to_string(port), error);
    if (error || found.empty()) {
        throw LabError(fmt::format("the proxy cannot resolve {}: {}", host, error.message()));
    }
    return found.begin()->endpoint();
}

// What the thread works on.
struct Core {
    /// `beside`: at another address of this machine, by the server's own port.
    Core(const std::string& host, std::uint16_t server_port, std::uint64_t seed, bool beside)
        : reserved(beside ? std::nullopt : std::optional<Port>(free_port())),
          port(beside ? server_port : reserved->number()),
          engine(context, {asio::ip::make_address(beside ? Proxy::beside_host : "127.0.0.1"), port},
                 resolved(context, host, server_port), seed) {}

    std::optional<Port> reserved;
    std::uint16_t port;
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    detail::ProxyEngine engine;
    std::thread thread;
};

}  // namespace

ProxyCounters& ProxyCounters::operator+=(const ProxyCounters& other) noexcept {
    forwarded_to_server += other.forwarded_to_server;
    forwarded_to_client += other.forwarded_to_client;
    swallowed_to_server += other.swallowed_to_server;
    swallowed_to_client += other.swallowed_to_client;
    delayed += other.delayed;
    stalled += other.stalled;
    connections_accepted += other.connections_accepted;
    connections_open += other.connections_open;
    connections_cut += other.connections_cut;
    server_unreachable += other.server_unreachable;
    return *this;
}

class Proxy::Impl {
public:
    Impl(const std::string& host, std::uint16_t server_port, std::uint64_t seed, bool beside)
        : owner_(::getpid()), core_(std::make_unique<Core>(host, server_port, seed, beside)) {
        // Another program may take the port between our look and our listening.
        for (int attempt = 1;; ++attempt) {
            try {
                core_->engine.listen();
                break;
            } catch (const LabError&) {
                if (attempt == 5) {
                    throw;
                }
                core_ = std::make_unique<Core>(host, server_port, seed, beside);
            }
        }
        core_->thread = std::thread([core = core_.get()] { core->context.run(); });
    }

    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    std::uint16_t port() const { return core_->port; }

    // Runs `function` on the engine's thread and returns what it returns or throws.
    template <class Function>
    auto on_engine(Function function) const {
        using Result = decltype(function(std::declval<detail::ProxyEngine&>()));
        auto task =
            std::make_shared<std::packaged_task<Result()>>([&] { return function(core_->engine); });
        auto result = task->get_future();
        asio::post(core_->context, [task] { (*task)(); });
        return result.get();
    }

    ~Impl() {
        if (owner_ != ::getpid()) {
            // A forked child has neither the thread nor a reactor of its own: closing here would
            // take the parent's sockets out of the parent's epoll set.
            static std::vector<Core*>* const left_alone = new std::vector<Core*>;
            left_alone->push_back(core_.release());
            return;
        }
        on_engine([](detail::ProxyEngine& engine) { engine.shut_down(); });
        core_->work.reset();
        core_->thread.join();
    }

private:
    const pid_t owner_;
    std::unique_ptr<Core> core_;
};

Proxy::Proxy(const std::string& host, std::uint16_t port, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(host, port, seed, false)) {}
Proxy Proxy::beside(std::uint16_t port) {
    return Proxy(std::make_unique<Impl>("127.0.0.1", port, 1, true));
}
Proxy::Proxy(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Proxy::Proxy(Proxy&&) noexcept = default;
Proxy& Proxy::operator=(Proxy&&) noexcept = default;
Proxy::~Proxy() = default;

std::uint16_t Proxy::port() const noexcept {
    return impl_->port();
}

void Proxy::listen_at(const std::string& address) {
    impl_->on_engine([&](detail::ProxyEngine& engine) { engine.listen_at(address); });
}

void Proxy::apply(const Fault& fault) {
    impl_->on_engine([&](detail::ProxyEngine& engine) { engine.apply(fault); });
}

void Proxy::delay(Direction direction, std::chrono::milliseconds time,
                  std::chrono::milliseconds jitter) {
    apply({.kind = Fault::Kind::delay, .direction = direction, .time = time, .jitter = jitter});
}

void Proxy::delay_both(std::chrono::milliseconds time, std::chrono::milliseconds jitter) {
    apply({.kind = Fault::Kind::delay, .time = time, .jitter = jitter});
}

void Proxy::cut_after(Direction direction, std::uint64_t bytes, Count count, unsigned times) {
    apply({.kind = Fault::Kind::cut,
           .direction = direction,
           .after = bytes,
           .count = count,
           .times = times});
}

void Proxy::reset_after(Direction direction, std::uint64_t bytes, Count count, unsigned times) {
    apply({.kind = Fault::Kind::cut,
           .direction = direction,
           .after = bytes,
           .count = count,
           .ending = Ending::reset,
           .times = times});
}

void Proxy::swallow(Direction direction) {
    apply({.kind = Fault::Kind::swallow, .direction = direction});
}

void Proxy::swallow_then_cut(Direction direction, std::uint64_t dropped, std::uint64_t after,
                             Ending ending) {
    apply({.kind = Fault::Kind::swallow,
           .direction = direction,
           .after = after,
           .cut_after = dropped,
           .ending = ending});
}

void Proxy::stall(Direction direction) {
    apply({.kind = Fault::Kind::stall, .direction = direction});
}

void Proxy::black_hole() {
    apply({.kind = Fault::Kind::black_hole});
}

void Proxy::refuse() {
    apply({.kind = Fault::Kind::refuse});
}

std::size_t Proxy::cut_all(Ending ending) {
    Fault fault;
    fault.kind = Fault::Kind::cut_all;
    fault.ending = ending;
    return impl_->on_engine([&](detail::ProxyEngine& engine) { return engine.apply(fault); });
}

void Proxy::heal() {
    impl_->on_engine([](detail::ProxyEngine& engine) {
        engine.stop_script();
        engine.heal();
    });
}

bool Proxy::fired() const {
    return impl_->on_engine([](detail::ProxyEngine& engine) { return engine.fired(); });
}

void Proxy::wait_fired(std::chrono::nanoseconds cap) const {
    wait_until([this] { return fired(); }, cap, "the proxy's fault acts");
}

ProxyCounters Proxy::counters() const {
    return impl_->on_engine([](detail::ProxyEngine& engine) { return engine.counters(); });
}

void Proxy::record() {
    impl_->on_engine([](detail::ProxyEngine& engine) { engine.record(); });
}

std::string Proxy::recorded(Direction direction) const {
    std::string bytes;
    for (const auto& piece : recorded_pieces()) {
        if (piece.direction == direction) {
            bytes += piece.bytes;
        }
    }
    return bytes;
}

std::vector<RecordedPiece> Proxy::recorded_pieces() const {
    return impl_->on_engine(
        [](detail::ProxyEngine& engine) { return std::vector<RecordedPiece>(engine.recorded()); });
}

void Proxy::run(const Script& script) {
    impl_->on_engine([&](detail::ProxyEngine& engine) { engine.run(script); });
}

void Proxy::run(const Script& script, std::ostream& plan) {
    plan << to_string(script) << std::flush;
    run(script);
}

bool Proxy::script_done() const {
    return impl_->on_engine([](detail::ProxyEngine& engine) { return engine.script_done(); });
}

}  // namespace holdfast::lab
