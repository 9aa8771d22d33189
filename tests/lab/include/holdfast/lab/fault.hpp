// A network fault as a value with a text form: the same words serve a test that installs one, a
// plan drawn from a seed, and a person at the command.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::lab {

/// Which way bytes travel through the proxy.
enum class Direction { to_server, to_client };

[[nodiscard]] std::string_view to_string(Direction direction) noexcept;

/// How a connection is ended: orderly, so that the peers read an end of file, or by a reset.
enum class Ending { close, reset };

/// Over which connections the bytes of a cut are counted.
enum class Count {
    overall,          ///< all bytes since the fault was armed, whichever connection they travel on
    new_connections,  ///< each connection accepted after that, on its own
};

/// One fault. Which members count depends on the kind.
struct Fault {
    enum class Kind {
        delay,       ///< bytes arrive `time` later, plus up to `jitter`, in order
        cut,         ///< after exactly `after` bytes both sides of the connection are ended
        swallow,     ///< after `after` bytes everything is read and dropped
        stall,       ///< nothing is read: what is sent waits in the kernel's buffers
        black_hole,  ///< stall both ways, and a new connection is accepted but not passed on
        refuse,      ///< new connections are refused; those that exist go on
        cut_all,     ///< all connections are ended now
        heal,        ///< no fault from here on
    };

    Kind kind = Kind::heal;
    std::optional<Direction> direction = {};      ///< empty: both ways (delay and stall only)
    std::chrono::milliseconds time{0};            ///< of delay
    std::chrono::milliseconds jitter{0};          ///< of delay
    std::uint64_t after = 0;                      ///< bytes forwarded before cut or swallow acts
    std::optional<std::uint64_t> cut_after = {};  ///< of swallow: end the connection after so many
    Count count = Count::overall;                 ///< of cut
    Ending ending = Ending::close;  ///< of cut, of swallow with cut_after, and of cut_all
    unsigned times = 1;             ///< connections to cut before it is spent; 0: no end

    friend bool operator==(const Fault&, const Fault&) = default;
};

/// The fault in words, as parse_fault() reads them.
[[nodiscard]] std::string to_string(const Fault& fault);

/// Reads a fault in words:
///
///     delay MS [jitter MS] [to_server|to_client]
///     cut|reset                                      all connections, now
///     cut|reset to_server|to_client BYTES [new] [times N]
///     swallow to_server|to_client [after BYTES] [cut BYTES|reset BYTES] [times N]
///     stall [to_server|to_client]
///     hole, refuse, heal
///
/// Bare `swallow` means `swallow to_client`. Errors: LabError saying what is wrong.
[[nodiscard]] Fault parse_fault(std::string_view words);

}  // namespace holdfast::lab
