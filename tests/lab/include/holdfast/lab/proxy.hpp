// A TCP proxy that can do to a connection what networks do. It is the lab's only source of network
// faults, because it needs no privileges and is exact to the byte: a test can cut at every position
// of an exchange.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/fault.hpp"
#include "holdfast/lab/script.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// What has happened since construction; the proof that a fault took effect.
struct ProxyCounters {
    std::uint64_t forwarded_to_server = 0;  ///< bytes handed to the kernel for the server
    std::uint64_t forwarded_to_client = 0;
    std::uint64_t swallowed_to_server = 0;  ///< bytes read and dropped
    std::uint64_t swallowed_to_client = 0;
    std::uint64_t delayed = 0;  ///< pieces that were held back by a delay
    std::uint64_t stalled = 0;  ///< times that bytes or connections had to wait
    std::uint64_t connections_accepted = 0;
    std::uint64_t connections_open = 0;    ///< at this moment
    std::uint64_t connections_cut = 0;     ///< ended by a fault, not by a peer
    std::uint64_t server_unreachable = 0;  ///< accepted, but the server could not be connected to

    ProxyCounters& operator+=(const ProxyCounters& other) noexcept;
};

/// Bytes of one direction that were forwarded together.
struct RecordedPiece {
    std::uint64_t connection = 0;  ///< in order of acceptance, from 1
    Direction direction = Direction::to_server;
    std::string bytes;
};

/// A proxy on a free loopback port with a thread of its own. Without faults it forwards at once,
/// with ends of file and resets.
///
/// Faults act on all connections, those that exist and new ones, until healed or spent; several may
/// be installed. Each member returns when its effect is in place. Thread safety: any thread may
/// call any member, except destruction.
class Proxy {
public:
    /// Starts to listen in front of `host`:`port`, which is connected to for each connection anew
    /// and need not be up yet. `seed` feeds the jitter. Errors: LabError.
    Proxy(const std::string& host, std::uint16_t port, std::uint64_t seed = 1);
    explicit Proxy(std::uint16_t port) : Proxy("127.0.0.1", port) {}
    /// In front of 127.0.0.1:`port`, at another address of this machine and by the same port: for
    /// servers that tell clients their ports. host() is not its address then.
    static Proxy beside(std::uint16_t port);
    static constexpr const char* beside_host = "127.0.0.2";
    Proxy(Proxy&&) noexcept;
    Proxy& operator=(Proxy&&) noexcept;
    ~Proxy();

    [[nodiscard]] std::string host() const { return "127.0.0.1"; }
    [[nodiscard]] std::uint16_t port() const noexcept;  ///< stays the same while refusing

    /// Listens at that address of this machine from now on, "127.0.0.2", on the same port. What is
    /// connected goes on; see cut_all(). Errors: LabError.
    void listen_at(const std::string& address);

    /// Installs a fault, as all the following do.
    void apply(const Fault& fault);

    /// Bytes of `direction` (both ways: delay_both) take `time` plus up to `jitter` longer. Zero
    /// takes the delay back.
    void delay(Direction direction, std::chrono::milliseconds time,
               std::chrono::milliseconds jitter = std::chrono::milliseconds::zero());
    void delay_both(std::chrono::milliseconds time,
                    std::chrono::milliseconds jitter = std::chrono::milliseconds::zero());

    /// Ends a connection once exactly `bytes` more of `direction` have been forwarded: right after
    /// the last of them, or, for 0, when the first one arrives, which then is not forwarded. Both
    /// peers read what was forwarded, then an end of file; one that goes on sending gets a reset.
    /// Spent after `times` connections; 0: never.
    void cut_after(Direction direction, std::uint64_t bytes, Count count = Count::overall,
                   unsigned times = 1);

    /// The same with a TCP reset for both peers.
    void reset_after(Direction direction, std::uint64_t bytes, Count count = Count::overall,
                     unsigned times = 1);

    /// Reads and drops everything of `direction`: with to_client, the server acts and its answer is
    /// lost. Lasts until healed.
    void swallow(Direction direction = Direction::to_client);

    /// Forwards `after` bytes of `direction`, drops the next `dropped`, then ends that connection,
    /// and is spent: the connection after it works. `dropped` is at least 1.
    void swallow_then_cut(Direction direction, std::uint64_t dropped, std::uint64_t after = 0,
                          Ending ending = Ending::close);

    /// Stops reading one direction. Once healed, what waited is forwarded.
    void stall(Direction direction);

    /// Stops reading both ways; connections stay open, new ones are accepted, nothing is answered.
    void black_hole();

    /// Closes the listener: a connection attempt is refused. Those that exist go on; see cut_all().
    void refuse();

    /// Ends all connections now and returns their number.
    std::size_t cut_all(Ending ending = Ending::close);

    /// Takes back all faults and stops a script. What was delayed or stalled is forwarded at once.
    /// A connection that lost bytes is reset (and counted as cut), since no network gives a stream
    /// with a hole in it. Errors: LabError when the port cannot be listened on again.
    void heal();

    /// Whether the fault installed last has acted on traffic. A refusal counts as soon as the
    /// listener is closed, as the kernel answers for it; cut_all when it ended something.
    [[nodiscard]] bool fired() const;

    /// Waits for fired(). Errors: LabError after `cap`.
    void wait_fired(std::chrono::nanoseconds cap = default_cap) const;

    [[nodiscard]] ProxyCounters counters() const;

    /// Forgets what was recorded and records what is forwarded from now on, on all connections.
    void record();

    /// The bytes of `direction` forwarded since record(), in the order in which a cut counts them.
    [[nodiscard]] std::string recorded(Direction direction) const;

    /// The same piece by piece, both directions in their true order.
    [[nodiscard]] std::vector<RecordedPiece> recorded_pieces() const;

    /// Plays `script` from now on, in the background, in place of any earlier one.
    void run(const Script& script);

    /// The same, after writing the plan to `plan`, so that a failure can be played again.
    void run(const Script& script, std::ostream& plan);

    /// Whether every step of the script has been played.
    [[nodiscard]] bool script_done() const;

private:
    class Impl;
    explicit Proxy(std::unique_ptr<Impl>) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
