#include "options.hpp"

#include <utility>

#include "../../tls/options.hpp"
#include "../common/server.hpp"
#include "../common/url_parts.hpp"
#include "holdfast/spi/identity.hpp"

namespace holdfast::mysql {
namespace {

Options::Tls tls_of(std::string_view text) {
    if (text == "on") return Options::Tls::on;
    return text == "off" ? Options::Tls::off : Options::Tls::automatic;
}

}  // namespace

Options::Options(const spi::Settings& s)
    : host(s.hosts.empty() ? "127.0.0.1" : sql::bare_host(s.hosts.front().host)),
      port(s.hosts.empty() ? std::uint16_t{3306} : s.hosts.front().port),
      socket(s.text("socket")),
      database(sql::database_of(s.path)),
      user(s.user),
      password(s.password),
      ttl(s.duration("ttl")),
      prefix(s.text("namespace")),
      tls(tls_of(s.text("tls"))),
      tls_verify(s.flag("tls_verify")),
      tls_ca_file(s.text("tls_ca_file")),
      tls_cert_file(s.text("tls_cert_file")),
      tls_key_file(s.text("tls_key_file")),
      silent(std::chrono::ceil<std::chrono::seconds>(s.duration("keepalive"))) {}

bool Options::tls_to(const std::string& address) const {
    return tls == Tls::on || (tls == Tls::automatic && !sql::on_this_machine(address));
}

bool Options::verifies_name() const {
    return socket.empty() && tls != Tls::off && tls_verify && !sql::is_address(host);
}

const std::vector<spi::OptionSpec>& option_table() {
    static const std::vector<spi::OptionSpec> table = tls::with_options(
        {
            {.name = "socket",
             .type = spi::OptionType::path,
             .fallback = "",
             .meaning = "The server's Unix socket, which replaces the host: "
                        "mysql:///app?socket=/run/mysqld/mysqld.sock.",
             .identity = spi::Identity::part},
            {.name = "tls",
             .type = spi::OptionType::choice,
             .fallback = "automatic",
             .meaning = "Use of TLS. automatic: to every address except loopback and Unix sockets.",
             .choices = "automatic|on|off",
             .identity = spi::Identity::apart},
            {.name = "keepalive",
             .type = spi::OptionType::duration,
             .fallback = "30s",
             .meaning = "Idle time after which the client probes its TCP connection. Without an "
                        "answer it closes it after the same time again.",
             .min = 1000,
             .max = 7'200'000,
             .identity = spi::Identity::apart},
        },
        false);
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    const std::string database = sql::database_of(s.path);
    if (database.find('/') != std::string::npos)
        d.add(s.display(), "The path must be the name of one database.",
              "Write for example mysql://host/app.");
    if (s.text("tls_cert_file").empty() != s.text("tls_key_file").empty())
        d.add(s.display(), "tls_cert_file and tls_key_file belong together.",
              "Give both or neither.");
    if (s.text("tls") == "off")
        for (const char* option : {"tls_ca_file", "tls_verify", "tls_cert_file", "tls_key_file"})
            if (s.given(option))
                d.add(s.display(), std::string(option) + " has no effect with tls=off.",
                      "Choose tls=on, or leave the option out.");
}

std::string identity(const spi::Settings& s) {
    const Options o(s);
    spi::IdentityText text;
    if (o.socket.empty())
        text.hosts({{o.host, o.port}});
    else
        text.socket(o.socket, o.port);
    text.part("database", o.database);
    return text.text();
}

Capabilities promises() {
    using enum Capability;
    return {SafetyClass::b,
            {fencing, cross_process, cross_host, renewal, previous_holder, inspect, list,
             break_lock, survives_client_clock_jump, survives_server_crash, shared, semaphore,
             downgrade, lock_delay, min_hold, release_request}};
}

}  // namespace holdfast::mysql
