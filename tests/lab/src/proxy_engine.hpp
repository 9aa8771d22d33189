// The proxy's work on its one thread. Everything is decided at the moment a byte is forwarded, by
// non-blocking writes: only so can a fault be exact to the byte over several connections.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/proxy.hpp"
#include "proxy_link.hpp"
#include "random.hpp"

namespace holdfast::lab::detail {

inline constexpr std::array both_ways = {Direction::to_server, Direction::to_client};

/// Thread safety: none; every member is called on the thread that runs the io_context.
class ProxyEngine {
public:
    ProxyEngine(boost::asio::io_context& context, Tcp::endpoint listen_at, Tcp::endpoint server,
                std::uint64_t seed);

    void listen();  // LabError when the port cannot be had
    void listen_at(const std::string& address);
    void shut_down();

    std::size_t apply(const Fault& fault);  // the number of connections that were ended at once
    void heal();
    void run(const Script& script);
    void stop_script();

    [[nodiscard]] bool fired() const { return fired_; }
    [[nodiscard]] bool script_done() const;
    [[nodiscard]] ProxyCounters counters() const;
    void record();
    [[nodiscard]] const std::vector<RecordedPiece>& recorded() const { return recorded_; }

private:
    using LinkPtr = std::shared_ptr<Link>;
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t no_cut = static_cast<std::size_t>(-1);

    struct Delay {
        std::chrono::milliseconds time{0};
        std::chrono::milliseconds jitter{0};
        std::uint64_t serial = 0;
    };
    struct Cut {
        Fault fault;
        std::uint64_t serial = 0;
        std::uint64_t left = 0;             // of an overall count
        std::uint64_t last_connection = 0;  // accepted before it was armed
    };
    struct Swallow {
        Fault fault;
        std::uint64_t serial = 0;
        std::uint64_t left = 0;             // still to be forwarded
        std::optional<std::uint64_t> link;  // with a cut: the one connection it acts on
    };

    void accept();
    void accepted(Tcp::socket socket);
    void connect(const LinkPtr& link);
    void read(const LinkPtr& link, Direction direction);
    void take(const LinkPtr& link, Direction direction);
    void write(const LinkPtr& link, Direction direction);
    void pass_end(const LinkPtr& link, Pipe& pipe);
    void arm_timer(const LinkPtr& link, Direction direction);
    void account(const LinkPtr& link, Direction direction, std::size_t bytes);
    void drop(const LinkPtr& link, Direction direction);
    void pump(const LinkPtr& link);

    [[nodiscard]] std::optional<std::uint64_t> left(const Cut& cut, Link& link,
                                                    Direction direction) const;
    [[nodiscard]] std::size_t nearest_cut(Link& link, Direction direction) const;
    void fire_cut(std::size_t index, const LinkPtr& link);
    [[nodiscard]] Swallow* swallow_for(const Link& link, Direction direction);
    void spend_swallow(Direction direction);

    void close(const LinkPtr& link, Ending ending);
    void cut(const LinkPtr& link, Ending ending);
    [[nodiscard]] std::vector<LinkPtr> all_links() const;
    [[nodiscard]] std::uint64_t stall_serial(Direction direction) const;
    void held_back(std::uint64_t serial);
    void fire(std::uint64_t serial);
    void play();

    static std::size_t index(Direction direction) {
        return direction == Direction::to_server ? 0 : 1;
    }

    boost::asio::io_context& context_;
    Tcp::endpoint listen_at_;
    const Tcp::endpoint server_;
    Tcp::acceptor acceptor_;
    boost::asio::steady_timer accept_again_;
    Random random_;
    std::map<std::uint64_t, LinkPtr> links_;
    std::array<char, 65536> buffer_{};

    std::uint64_t installed_ = 0;  // serial of the fault installed last
    bool fired_ = false;           // whether that one has acted
    std::array<Delay, 2> delay_;
    std::array<std::uint64_t, 2> stall_{};  // serial, or 0
    std::uint64_t hole_ = 0;                // serial, or 0
    std::vector<Cut> cuts_;
    std::array<std::optional<Swallow>, 2> swallow_;

    boost::asio::steady_timer script_timer_;
    std::vector<Step> script_;  // what has not been played yet
    Clock::time_point script_start_;
    std::uint64_t script_base_ = 0;  // connections accepted before it
    std::string script_failure_;

    ProxyCounters counters_;
    bool recording_ = false;
    std::vector<RecordedPiece> recorded_;
};

}  // namespace holdfast::lab::detail
