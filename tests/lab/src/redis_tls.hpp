// What Redis servers and Sentinels are told of TLS.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "holdfast/lab/redis_server.hpp"

namespace holdfast::lab::detail {

/// The lines of a configuration: a port for clients, and one in clear for the lab.
inline std::string ports_of(std::uint16_t clients, std::uint16_t clear, const TlsFiles& files) {
    return fmt::format(
        "port {}\ntls-port {}\ntls-auth-clients no\n"
        "tls-ca-cert-file \"{}\"\ntls-cert-file \"{}\"\ntls-key-file \"{}\"\n",
        clear, clients, files.ca.string(), files.cert.string(), files.key.string());
}

/// Servers with TLS speak it to each other as well, so they are of one authority.
inline RedisOptions with_one_authority(RedisOptions o, const std::filesystem::path& directory) {
    if (!o.tls) {
        return o;
    }
    if (o.certificate.ca.empty()) {
        o.certificate = make_tls_files(directory);
    }
    o.config.emplace_back("tls-replication yes");
    return o;
}

}  // namespace holdfast::lab::detail
