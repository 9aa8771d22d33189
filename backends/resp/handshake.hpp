// What every connection sends first: user and password, database, a question for the time.
#pragma once
#include <string>

#include "codec.hpp"
#include "server.hpp"

namespace holdfast::resp {

/// AUTH (reads the password anew), SELECT, TIME and the greeting, each only if needed. For the
/// engine's connections and for lanes.
class Handshake {
public:
    /// Appends the commands to `out`. Errors: bad_config when the password cannot be read.
    spi::Failure begin(Server&, std::string& out);
    /// Number of replies still to come.
    unsigned left() const noexcept { return left_; }
    spi::Failure take(const Reply&, Server&);
    /// The server has said something.
    bool answered() const noexcept { return answered_; }

private:
    bool auth_ = false, select_ = false, answered_ = false;
    unsigned left_ = 0, greeting_ = 0, greeted_ = 0;
};

}  // namespace holdfast::resp
