#include "options.hpp"

namespace holdfast::postgresql {
namespace {

/// Those of libpq's own that may be given; all others are ours.
constexpr const char* passed_on[] = {"sslmode",         "sslrootcert", "sslcert",
                                     "sslkey",          "sslcrl",      "gssencmode",
                                     "channel_binding", "krbsrvname",  "application_name"};
constexpr std::size_t longest_identifier = 63;

std::string database_of(std::string_view path) {
    if (path.starts_with('/')) path.remove_prefix(1);
    return std::string(path);
}

}  // namespace

Options::Options(const spi::Settings& s)
    : host(s.hosts.empty() ? "127.0.0.1" : s.hosts.front().host),
      port(s.hosts.empty() ? std::uint16_t{5432} : s.hosts.front().port),
      socket(s.text("socket")),
      database(database_of(s.path)),
      user(s.user),
      password(s.password),
      prefix(s.text("namespace")),
      schema(s.text("schema")),
      display(s.display()) {
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    for (const char* option : passed_on)
        if (!s.text(option).empty()) libpq.emplace_back(option, s.text(option));
}

const std::vector<spi::OptionSpec>& option_table() {
    using spi::OptionType;
    static const std::vector<spi::OptionSpec> table{
        {.name = "schema",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "The schema of the table holdfast_lease. Without it: the first of search_path.",
         .max = static_cast<long long>(longest_identifier)},
        {.name = "socket",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "The folder of the server's Unix socket, used instead of the host; the port "
                    "still names the socket in it."},
        {.name = "sslmode",
         .type = OptionType::choice,
         .fallback = "prefer",
         .meaning = "As libpq's: whether TLS is used, and how much of the certificate is checked. "
                    "Only verify-full knows the server.",
         .choices = "disable|allow|prefer|require|verify-ca|verify-full"},
        {.name = "sslrootcert",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "As libpq's: certificates to trust, in PEM."},
        {.name = "sslcert",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "As libpq's: our own certificate, in PEM."},
        {.name = "sslkey",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "As libpq's: the private key of sslcert."},
        {.name = "sslcrl",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "As libpq's: certificates that were revoked."},
        {.name = "channel_binding",
         .type = OptionType::choice,
         .fallback = "prefer",
         .meaning = "As libpq's: bind the password's exchange to the TLS connection.",
         .choices = "disable|prefer|require"},
        {.name = "gssencmode",
         .type = OptionType::choice,
         .fallback = "disable",
         .meaning = "As libpq's: encryption by GSSAPI.",
         .choices = "disable|prefer|require"},
        {.name = "krbsrvname",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "As libpq's: the Kerberos service name of the server.",
         .max = 255},
        {.name = "application_name",
         .type = OptionType::text,
         .fallback = "holdfast",
         .meaning = "As libpq's: what pg_stat_activity shows.",
         .max = static_cast<long long>(longest_identifier)},
    };
    return table;
}

void check(const spi::Settings& s, Diagnostics& d) {
    if (database_of(s.path).find('/') != std::string::npos)
        d.add(s.display(), "The path must be the name of one database.",
              "Write for example postgresql://host/app.");
    if (s.text("sslcert").empty() != s.text("sslkey").empty())
        d.add(s.display(), "sslcert and sslkey belong together.", "Give both or neither.");
    if (s.text("sslmode").starts_with("verify") && s.text("sslrootcert").empty())
        d.add(s.display(), "sslmode=" + std::string(s.text("sslmode")) + " needs sslrootcert.",
              "Name a file with the certificates to trust.");
    if (s.text("sslmode") == "disable")
        for (const char* option : {"sslrootcert", "sslcert", "sslkey", "sslcrl"})
            if (s.given(option))
                d.add(s.display(), std::string(option) + " has no effect with sslmode=disable.",
                      "Choose another sslmode, or leave the option out.");
}

Capabilities promises() {
    using enum Capability;
    return {SafetyClass::b,
            {fencing, notified, cross_process, cross_host, renewal, previous_holder, inspect, list,
             break_lock, survives_client_clock_jump, survives_server_crash}};
}

}  // namespace holdfast::postgresql
