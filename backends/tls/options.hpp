// TLS options, the same for all backends that have TLS: declared, checked, with their types.
#pragma once
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::tls {

struct Options {
    bool on = false, verify = true;
    std::string ca_file, cert_file, key_file, server_name;

    Options() = default;
    Options(const spi::Settings& s, bool used)
        : on(used),
          verify(s.flag("tls_verify")),
          ca_file(s.text("tls_ca_file")),
          cert_file(s.text("tls_cert_file")),
          key_file(s.text("tls_key_file")),
          server_name(s.text("tls_server_name")) {}
};

/// A backend's option table: its own rows, then the rows of TLS. `any_name`: its client can expect
/// another name than that of the host.
inline std::vector<spi::OptionSpec> with_options(std::vector<spi::OptionSpec> rows,
                                                 bool any_name = true) {
    using spi::OptionType;
    const spi::OptionSpec more[] = {
        {.name = "tls_ca_file",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "TLS: PEM file of the trusted certificates. By default those of the system.",
         .identity = spi::Identity::apart},
        {.name = "tls_verify",
         .type = OptionType::boolean,
         .fallback = "yes",
         .meaning = "TLS: check the server's certificate and its host name.",
         .identity = spi::Identity::apart},
        {.name = "tls_cert_file",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "TLS: PEM file of the client certificate.",
         .identity = spi::Identity::apart},
        {.name = "tls_key_file",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "TLS: PEM file of the private key of tls_cert_file.",
         .identity = spi::Identity::apart},
    };
    rows.insert(rows.end(), std::begin(more), std::end(more));
    if (any_name)
        rows.push_back({.name = "tls_server_name",
                        .type = OptionType::text,
                        .fallback = "",
                        .meaning = "TLS: name or address that the server's certificate must have, "
                                   "of every server. By default the host's.",
                        .max = 253,
                        .identity = spi::Identity::apart});
    return rows;
}

/// `plain` and `secure` are the two schemes of the backend.
inline void check(const spi::Settings& s, std::string_view plain, std::string_view secure,
                  Diagnostics& d) {
    constexpr std::array names{"tls_ca_file", "tls_verify", "tls_cert_file", "tls_key_file",
                               "tls_server_name"};
    if (s.scheme != secure)
        for (const char* option : names)
            if (s.given(option))
                d.add(s.display(), std::string(option) + " has no effect without TLS.",
                      "Write " + std::string(secure) + ":// instead of " + std::string(plain) +
                          "://, or leave the option out.");
    constexpr std::string_view of_names =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:";
    if (s.text("tls_server_name").find_first_not_of(of_names) != std::string::npos)
        d.add(s.display(), "tls_server_name must be a host name or an address.",
              "Write it as the certificate has it, for example cache.example.");
    if (s.text("tls_cert_file").empty() != s.text("tls_key_file").empty())
        d.add(s.display(), "tls_cert_file and tls_key_file belong together.",
              "Give both or neither.");
}

/// For people, behind what happened: a server that ends a connection without a word may be one with
/// TLS. `secure`: as below.
inline std::string as_with_tls(std::string_view secure) {
    return ", as of a port with TLS (" + std::string(secure) + ")";
}

/// Warnings for an operator: what an attacker on the network can read or fake. `secure`: what to
/// write for TLS, such as "rediss://".
inline std::vector<std::string> exposures(const Options& o, bool has_password, bool local,
                                          const std::string& display, std::string_view secure) {
    std::vector<std::string> out;
    if (has_password && !o.on && !local)
        out.push_back(display + ": the password crosses the network in clear; " +
                      std::string(secure) + " keeps it secret");
    if (o.on && !o.verify)
        out.push_back(
            display +
            ": tls_verify=no: an attacker on the network path can impersonate the server");
    return out;
}

}  // namespace holdfast::tls
