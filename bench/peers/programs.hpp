// Which other libraries there are, and how their programs beside the bench's are started.
#pragma once
#include <functional>

#include "bench.hpp"
#include "processes/peer.hpp"

namespace holdfast::bench {

struct Peer {
    std::string backend;  ///< whose server it uses
    std::string name;     ///< of the library
    PeerStart start;
    double warm_up = 0.3;          ///< seconds of cycles that nobody looks at
    std::function<bool()> locked;  ///< whether the server shows the peer's lock as held
};

/// One for each library whose server runs.
std::vector<Peer> peers(Bench&);

}  // namespace holdfast::bench
