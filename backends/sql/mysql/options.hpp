// The backend's options with their types, the option table, and what a configuration promises.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::mysql {

struct Options {
    explicit Options(const spi::Settings&);

    enum class Tls { off, automatic, on };
    /// To that address; an empty one is the Unix socket.
    bool tls_to(const std::string& address) const;
    /// Whether the certificate has to have the host's name, of a host that is not an address.
    bool verifies_name() const;

    std::string host;
    std::uint16_t port;
    std::string socket;  ///< the server's Unix socket; empty: host and port
    std::string database, user;
    spi::Secret password;
    milliseconds ttl{};  ///< default of a lock
    std::string prefix;  ///< namespace, put before every name
    Tls tls;
    bool tls_verify;
    std::string tls_ca_file, tls_cert_file, tls_key_file;
    std::chrono::seconds silent;  ///< idle time of a connection after which TCP probes the peer
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises();
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::mysql
