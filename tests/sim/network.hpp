// Connections between simulated clients and servers: streams whose bytes take their time, wait
// where a way is cut, and break. Each direction keeps its order; connections overtake each other.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "descriptors.hpp"

namespace holdfast::sim {

class Connection;

/// What listens at an address.
class Server {
public:
    virtual ~Server() = default;
    virtual bool listens() const = 0;
    virtual void opened(const std::shared_ptr<Connection>&) = 0;
    virtual void arrived(Connection&, std::string_view bytes) = 0;
    /// The other end is gone, or seems to be.
    virtual void closed(Connection&) = 0;
    const std::string& name() const { return machine.name; }

    Process machine;
};

/// The address of a server.
inline std::string host(std::size_t server) {
    return "10.0.0." + std::to_string(server + 1);
}

enum Way : std::uint8_t { to_server, to_client };

/// Between one process and one server.
class Route {
public:
    Route(Kernel& k, Process& p, Server& s) : kernel(k), process(p), server(s) {}
    void cut(Way);
    /// What waited goes on, when it is sent again.
    void heal(Way);
    bool is_cut(Way w) const noexcept { return cut_[w]; }
    Nanos delay();

    Kernel& kernel;
    Process& process;
    Server& server;
    /// From now on a message takes at most so long, or what it takes at least.
    void slow(Nanos most) noexcept { longest = std::max(most, usual); }

    Nanos shortest = 50 * us, longest = 400 * us, usual = 400 * us;
    std::vector<std::weak_ptr<Connection>> connections;

private:
    std::array<bool, 2> cut_{};
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(Route& r, std::weak_ptr<Socket> s) : route_(r), socket_(std::move(s)) {}
    void open();
    // --- the client's end
    void send(std::string bytes);
    void client_closes();
    // --- the server's end
    void reply(std::string bytes);
    /// `loses`: also what it has sent and has not arrived.
    void server_closes(bool loses);
    // --- faults
    /// Nobody has this connection any more; who is told? What is under way may be lost.
    void break_off(bool tell_client, bool tell_server);

    Route& route() noexcept { return route_; }
    bool at_server() const noexcept { return at_server_; }
    std::string received;  ///< by the server, and not read yet

private:
    struct Parcel {
        enum class Kind : std::uint8_t { hello, accepted, bytes, end, reset } kind;
        std::string bytes = {};
    };
    friend class Route;
    void put(Way, Parcel);
    /// What is due arrives, in the order in which it was sent, unless the way is cut.
    void deliver(Way);
    void deliver_at(Way, Nanos);
    void arrive(Way, Parcel);
    void at_the_server(Parcel&);
    void at_the_client(Parcel&);

    Route& route_;
    std::weak_ptr<Socket> socket_;
    struct Sent {
        std::uint64_t number;
        Nanos due;
        Parcel parcel;
    };
    struct {
        Nanos last = 0;
        std::deque<Sent> under_way;
        std::uint64_t lost_before = 0, sent = 0;
    } ways_[2];
    bool at_server_ = false, client_closed_ = false, refused_ = false;
};

}  // namespace holdfast::sim
