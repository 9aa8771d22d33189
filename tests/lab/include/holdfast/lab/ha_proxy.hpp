// HAProxy, Debian's package, with a configuration of the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::lab {

/// A running HAProxy. It ends with this object, and also when this process dies.
class HaProxy {
public:
    /// `config` makes the whole configuration file for the port that clients come to. Returns when
    /// HAProxy listens there, whether or not it has a server to lead to. Errors: LabError when the
    /// package haproxy is missing, or when it refuses the file, with its words.
    explicit HaProxy(const std::function<std::string(std::uint16_t port)>& config);

    [[nodiscard]] std::uint16_t port() const noexcept { return port_.number(); }
    [[nodiscard]] Process& process() noexcept { return process_; }

private:
    TempDir directory_;
    Port port_ = free_port();
    Process process_;
};

}  // namespace holdfast::lab
