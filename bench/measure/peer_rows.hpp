// What another library's program says, and the rows that become of it: no process and no server, so
// that tests can judge it. The words are those of peers/README.md.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "measure/latency.hpp"
#include "measure/row.hpp"

namespace holdfast::bench {

inline constexpr const char* peers_scenario = "peers";
inline constexpr const char* peer_over_floor = "time over the bare floor";
inline constexpr const char* peer_not_installed = "not installed";

/// A peer that failed or makes no sense; its words say which.
class PeerError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct PeerSaid {
    enum class Kind : std::uint8_t {
        ready,    ///< version, settings
        missing,  ///< words: what brings the library
        failed,   ///< words: why
        held,
        freed,
        block  ///< us
    };
    Kind kind{};
    std::string version, settings, words;
    std::vector<double> us;  ///< of each cycle
};

/// One line of a peer. Errors: PeerError when it is none.
PeerSaid parse_peer(std::string_view line);

/// The same, where only one kind will do. Errors: PeerError, with the peer's own reason if it gave
/// one.
PeerSaid parse_peer(std::string_view line, PeerSaid::Kind wanted);

/// "peer: redis-py 4.3.4"
std::string peer_variant(const std::string& name, const std::string& version);

/// What was measured of a peer, of a floor, or of Holdfast beside them.
struct PeerFigures {
    std::string backend, variant, note;
    std::vector<double> p50_us;  ///< one per round
    Latency all;
    std::vector<double> over_floor;  ///< one per round; empty: this is the floor
};

/// p50, p99, and the ratio to the floor; none where nothing was measured.
Rows peer_rows(const PeerFigures&);

/// Neither an error nor a figure: that it is not here, and which package brings it.
Row missing_peer(const std::string& backend, const std::string& name, const std::string& from);

}  // namespace holdfast::bench
