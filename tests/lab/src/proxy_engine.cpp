// Sockets are waited for and then used without blocking, never by composed operations: a stall must
// leave the bytes in the kernel, and a cut must know at once how many were written.
#include "proxy_engine.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t most_queued = 1 << 20;

void prepare(Tcp::socket& socket) {
    error_code ignored;
    // Asio does not ask for close-on-exec, and a child holding a copy would keep a cut one open.
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    socket.non_blocking(true, ignored);
    socket.set_option(Tcp::no_delay(true), ignored);
}

void discard_input(Tcp::socket& socket, std::array<char, 65536>& buffer) {
    error_code error;
    while (!error && socket.read_some(asio::buffer(buffer), error) > 0) {
    }
}

}  // namespace

ProxyEngine::ProxyEngine(asio::io_context& context, Tcp::endpoint listen_at, Tcp::endpoint server,
                         std::uint64_t seed)
    : context_(context),
      listen_at_(std::move(listen_at)),
      server_(std::move(server)),
      acceptor_(context),
      accept_again_(context),
      random_(seed),
      script_timer_(context) {}

void ProxyEngine::listen() {
    if (acceptor_.is_open()) {
        return;
    }
    error_code error;
    acceptor_.open(listen_at_.protocol(), error);
    if (!error) {
        ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
        acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
        acceptor_.bind(listen_at_, error);
    }
    if (!error) {
        acceptor_.listen(1024, error);
    }
    if (error) {
        error_code ignored;
        acceptor_.close(ignored);
        throw LabError(fmt::format("the proxy cannot listen on port {}: {}", listen_at_.port(),
                                   error.message()));
    }
    accept();
}

void ProxyEngine::listen_at(const std::string& address) {
    error_code error;
    listen_at_.address(asio::ip::make_address(address, error));
    if (error) throw LabError(address + " is no address");
    acceptor_.close(error);
    listen();
}

void ProxyEngine::shut_down() {
    error_code ignored;
    stop_script();
    accept_again_.cancel();
    acceptor_.close(ignored);
    for (const auto& link : all_links()) {
        close(link, Ending::reset);
    }
}

void ProxyEngine::accept() {
    acceptor_.async_accept([this](error_code error, Tcp::socket socket) {
        if (!error) {
            accepted(std::move(socket));
        }
        if (!acceptor_.is_open()) {
            return;
        }
        if (!error || error == asio::error::operation_aborted) {
            // Aborted and open again: a refusal was healed, and listen() has started anew.
            if (!error) {
                accept();
            }
            return;
        }
        // Out of descriptors, most likely: it may pass, and must not turn into a busy loop.
        accept_again_.expires_after(std::chrono::milliseconds(10));
        accept_again_.async_wait([this](error_code stopped) {
            if (!stopped && acceptor_.is_open()) {
                accept();
            }
        });
    });
}

void ProxyEngine::accepted(Tcp::socket socket) {
    prepare(socket);
    const auto number = ++counters_.connections_accepted;
    const auto link = std::make_shared<Link>(number, std::move(socket));
    links_.emplace(number, link);
    play();
    if (!link->open) {
        return;
    }
    if (hole_ != 0) {
        held_back(hole_);
    } else {
        connect(link);
    }
}

void ProxyEngine::connect(const LinkPtr& link) {
    if (link->connecting || link->connected) {
        return;
    }
    link->connecting = true;
    link->server.async_connect(server_, [this, link](error_code error) {
        link->connecting = false;
        if (!link->open) {
            return;
        }
        if (error) {
            ++counters_.server_unreachable;
            close(link, Ending::reset);
            return;
        }
        prepare(link->server);
        link->connected = true;
        pump(link);
    });
}

void ProxyEngine::pump(const LinkPtr& link) {
    for (const auto direction : both_ways) {
        if (link->open && link->connected) {
            write(link, direction);
            read(link, direction);
        }
    }
}

void ProxyEngine::read(const LinkPtr& link, Direction direction) {
    Pipe& pipe = link->pipe(direction);
    if (!link->open || !link->connected || pipe.waiting_read || pipe.ended || pipe.held ||
        pipe.queued >= most_queued) {
        return;
    }
    pipe.waiting_read = true;
    pipe.from.async_wait(Tcp::socket::wait_read, [this, link, direction](error_code error) {
        Pipe& ready = link->pipe(direction);
        ready.waiting_read = false;
        if (!link->open) {
            return;
        }
        if (error) {
            close(link, Ending::reset);
        } else if (const auto serial = stall_serial(direction); serial != 0) {
            ready.held = true;
            held_back(serial);
        } else {
            take(link, direction);
        }
    });
}

void ProxyEngine::take(const LinkPtr& link, Direction direction) {
    Pipe& pipe = link->pipe(direction);
    error_code error;
    const auto count = pipe.from.read_some(asio::buffer(buffer_), error);
    if (error == asio::error::eof) {
        pipe.ended = true;
    } else if (error && error != asio::error::would_block) {
        close(link, Ending::reset);
        return;
    }
    if (count > 0) {
        const Delay& delay = delay_[index(direction)];
        auto due = Clock::now() + delay.time;
        if (delay.jitter.count() > 0) {
            due += std::chrono::milliseconds(
                random_.below(static_cast<std::uint64_t>(delay.jitter.count()) + 1));
        }
        if (delay.serial != 0) {
            ++counters_.delayed;
            fire(delay.serial);
        }
        if (!pipe.queue.empty()) {
            due = std::max(due, pipe.queue.back().due);
        }
        pipe.queue.push_back({std::string(buffer_.data(), count), 0, due});
        pipe.queued += count;
    }
    write(link, direction);
    read(link, direction);
}

void ProxyEngine::write(const LinkPtr& link, Direction direction) {
    Pipe& pipe = link->pipe(direction);
    while (link->open && link->connected && !pipe.waiting_write) {
        if (pipe.queue.empty()) {
            pass_end(link, pipe);
            return;
        }
        if (const auto serial = stall_serial(direction); serial != 0) {
            fire(serial);
            return;
        }
        if (pipe.queue.front().due > Clock::now()) {
            arm_timer(link, direction);
            return;
        }
        Swallow* const swallow = swallow_for(*link, direction);
        if (swallow != nullptr && swallow->left == 0) {
            drop(link, direction);
            continue;
        }
        const Piece& piece = pipe.queue.front();
        std::uint64_t most = piece.bytes.size() - piece.begin;
        if (swallow != nullptr) {
            most = std::min(most, swallow->left);
        }
        if (const auto cut = nearest_cut(*link, direction); cut != no_cut) {
            const auto allowed = *left(cuts_[cut], *link, direction);
            if (allowed == 0) {
                fire_cut(cut, link);
                return;
            }
            most = std::min(most, allowed);
        }
        error_code error;
        const auto written = pipe.to.write_some(
            asio::buffer(piece.bytes.data() + piece.begin, static_cast<std::size_t>(most)), error);
        if (error == asio::error::would_block) {
            pipe.waiting_write = true;
            pipe.to.async_wait(Tcp::socket::wait_write, [this, link, direction](error_code) {
                link->pipe(direction).waiting_write = false;
                write(link, direction);
                read(link, direction);
            });
        } else if (error) {
            close(link, Ending::reset);
        } else {
            account(link, direction, written);
        }
    }
}

void ProxyEngine::pass_end(const LinkPtr& link, Pipe& pipe) {
    if (!pipe.ended || pipe.end_passed ||
        stall_serial(&pipe == &link->to_server ? Direction::to_server : Direction::to_client) !=
            0) {
        return;
    }
    pipe.end_passed = true;
    error_code ignored;
    pipe.to.shutdown(Tcp::socket::shutdown_send, ignored);
    if (link->to_server.end_passed && link->to_client.end_passed) {
        close(link, Ending::close);
    }
}

void ProxyEngine::arm_timer(const LinkPtr& link, Direction direction) {
    Pipe& pipe = link->pipe(direction);
    if (pipe.timer_armed) {
        return;
    }
    pipe.timer_armed = true;
    pipe.timer.expires_at(pipe.queue.front().due);
    pipe.timer.async_wait([this, link, direction](error_code error) {
        if (!error) {
            link->pipe(direction).timer_armed = false;
            write(link, direction);
            read(link, direction);
        }
    });
}

// Books bytes as forwarded, and cuts if they were the last that a cut lets through.
void ProxyEngine::account(const LinkPtr& link, Direction direction, std::size_t bytes) {
    Pipe& pipe = link->pipe(direction);
    Piece& piece = pipe.queue.front();
    (direction == Direction::to_server ? counters_.forwarded_to_server
                                       : counters_.forwarded_to_client) += bytes;
    if (recording_) {
        recorded_.push_back({link->id, direction, piece.bytes.substr(piece.begin, bytes)});
    }
    if (Swallow* const swallow = swallow_for(*link, direction); swallow != nullptr) {
        swallow->left -= std::min<std::uint64_t>(swallow->left, bytes);
    }
    pipe.forwarded += bytes;
    pipe.queued -= bytes;
    piece.begin += bytes;
    if (piece.begin == piece.bytes.size()) {
        pipe.queue.pop_front();
    }
    for (auto& cut : cuts_) {
        if (cut.fault.direction == direction && cut.fault.count == Count::overall) {
            cut.left -= std::min<std::uint64_t>(cut.left, bytes);
        }
    }
    const auto cut = nearest_cut(*link, direction);
    if (cut != no_cut && cuts_[cut].fault.after > 0 && *left(cuts_[cut], *link, direction) == 0) {
        fire_cut(cut, link);
    }
}

void ProxyEngine::drop(const LinkPtr& link, Direction direction) {
    Pipe& pipe = link->pipe(direction);
    Swallow& swallow = *swallow_[index(direction)];
    Piece& piece = pipe.queue.front();
    std::uint64_t bytes = piece.bytes.size() - piece.begin;
    if (swallow.fault.cut_after) {
        swallow.link = link->id;
        bytes = std::min(bytes, *swallow.fault.cut_after - pipe.swallowed);
    }
    (direction == Direction::to_server ? counters_.swallowed_to_server
                                       : counters_.swallowed_to_client) += bytes;
    pipe.swallowed += bytes;
    pipe.queued -= static_cast<std::size_t>(bytes);
    piece.begin += static_cast<std::size_t>(bytes);
    if (piece.begin == piece.bytes.size()) {
        pipe.queue.pop_front();
    }
    fire(swallow.serial);
    if (swallow.fault.cut_after && pipe.swallowed >= *swallow.fault.cut_after) {
        cut(link, swallow.fault.ending);
    }
}

void ProxyEngine::close(const LinkPtr& link, Ending ending) {
    if (!link->open) {
        return;
    }
    link->open = false;
    links_.erase(link->id);
    for (const auto direction : both_ways) {
        link->pipe(direction).timer.cancel();
        link->pipe(direction).queue.clear();
        const auto& swallow = swallow_[index(direction)];
        if (swallow && swallow->link == link->id) {
            spend_swallow(direction);
        }
    }
    for (auto* socket : {&link->client, &link->server}) {
        error_code ignored;
        if (!socket->is_open()) {
            continue;
        }
        if (ending == Ending::reset) {
            socket->set_option(asio::socket_base::linger(true, 0), ignored);
        } else {
            // The kernel answers unread input with a reset, which could overtake what we sent.
            socket->non_blocking(true, ignored);
            discard_input(*socket, buffer_);
            socket->shutdown(Tcp::socket::shutdown_both, ignored);
        }
        socket->close(ignored);
    }
}

void ProxyEngine::cut(const LinkPtr& link, Ending ending) {
    if (link->open) {
        ++counters_.connections_cut;
        close(link, ending);
    }
}

std::vector<ProxyEngine::LinkPtr> ProxyEngine::all_links() const {
    std::vector<LinkPtr> all;
    for (const auto& [number, link] : links_) {
        all.push_back(link);
    }
    return all;
}

ProxyCounters ProxyEngine::counters() const {
    auto result = counters_;
    result.connections_open = links_.size();
    return result;
}

void ProxyEngine::record() {
    recording_ = true;
    recorded_.clear();
}

}  // namespace holdfast::lab::detail
