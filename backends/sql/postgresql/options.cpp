#include "options.hpp"

#include <libpq-fe.h>

#include <cstdlib>
#include <memory>

#include "../common/url_parts.hpp"
#include "holdfast/spi/identity.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::postgresql {
namespace {

/// Those of libpq's own that may be given; all others are ours.
constexpr const char* passed_on[] = {"sslmode",         "sslrootcert", "sslcert",
                                     "sslkey",          "sslcrl",      "gssencmode",
                                     "channel_binding", "krbsrvname",  "application_name"};
constexpr std::size_t longest_identifier = 63;

/// What libpq takes where the URL says nothing: from its environment, or the service that this
/// names, or as it was compiled. Empty: nothing.
std::string default_of(std::string_view keyword) {
    const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(PQconndefaults(),
                                                                           &PQconninfoFree);
    for (const auto* o = all.get(); o != nullptr && o->keyword != nullptr; ++o)
        if (o->keyword == keyword && o->val != nullptr) return o->val;
    return {};
}
std::string given_or_default(const std::string& given, std::string_view keyword) {
    return given.empty() ? default_of(keyword) : given;
}

/// Where the table is.
std::vector<spi::OptionSpec> table_options() {
    return {
        {.name = "schema",
         .type = spi::OptionType::text,
         .fallback = "",
         .meaning = "Schema of the table holdfast_lease. By default the first one of search_path.",
         .max = static_cast<long long>(longest_identifier),
         .identity = spi::Identity::part},
        {.name = "socket",
         .type = spi::OptionType::path,
         .fallback = "",
         .meaning = "Directory of the server's Unix socket, which replaces the host: "
                    "postgresql:///app?socket=/run/postgresql. The port of a host that is given "
                    "selects the socket.",
         .identity = spi::Identity::part},
    };
}

/// About servers that replace each other.
std::vector<spi::OptionSpec> failover_options() {
    return {
        {.name = "listen",
         .type = spi::OptionType::list,
         .fallback = "",
         .meaning =
             "Where the URL leads to a connection pooler: HOST:PORT of the server itself, or "
             "of several, separated by commas. Waiters are notified over a connection of "
             "its own to the primary among these; without it, behind a pooler, they look "
             "once a second.",
         .identity = spi::Identity::apart},
        {.name = "promotes",
         .type = spi::OptionType::choice,
         .fallback = "any",
         .meaning = "Which standbys may be promoted. synchronous: only one that had every commit "
                    "that was answered, as Patroni's synchronous_mode does. examine() then "
                    "believes that with one synchronous standby; with any, a commit has to wait "
                    "for all of them.",
         .choices = "any|synchronous",
         .identity = spi::Identity::apart},
    };
}

/// libpq's own about TLS.
std::vector<spi::OptionSpec> tls_options() {
    return {
        {.name = "sslmode",
         .type = spi::OptionType::choice,
         .fallback = "",
         .meaning = "libpq's sslmode: use of TLS and check of the certificate. Only verify-full "
                    "proves which server answers. By default PGSSLMODE or that of PGSERVICE "
                    "unless it is prefer, else require to another machine and prefer on this one.",
         .choices = "disable|allow|prefer|require|verify-ca|verify-full",
         .identity = spi::Identity::apart},
        {.name = "sslrootcert",
         .type = spi::OptionType::path,
         .fallback = "",
         .meaning = "libpq's sslrootcert: PEM file of the trusted certificates.",
         .identity = spi::Identity::apart},
        {.name = "sslcert",
         .type = spi::OptionType::path,
         .fallback = "",
         .meaning = "libpq's sslcert: PEM file of the client certificate.",
         .identity = spi::Identity::apart},
        {.name = "sslkey",
         .type = spi::OptionType::path,
         .fallback = "",
         .meaning = "libpq's sslkey: private key of sslcert.",
         .identity = spi::Identity::apart},
        {.name = "sslcrl",
         .type = spi::OptionType::path,
         .fallback = "",
         .meaning = "libpq's sslcrl: certificate revocation list.",
         .identity = spi::Identity::apart},
        {.name = "channel_binding",
         .type = spi::OptionType::choice,
         .fallback = "",
         .meaning = "libpq's channel_binding: binds authentication to the TLS connection. By "
                    "default PGCHANNELBINDING, else prefer.",
         .choices = "disable|prefer|require",
         .identity = spi::Identity::apart},
    };
}

/// About the session.
std::vector<spi::OptionSpec> session_options() {
    return {
        {.name = "gssencmode",
         .type = spi::OptionType::choice,
         .fallback = "disable",
         .meaning = "libpq's gssencmode: encryption by GSSAPI. PGGSSENCMODE replaces the default.",
         .choices = "disable|prefer|require",
         .identity = spi::Identity::apart},
        {.name = "krbsrvname",
         .type = spi::OptionType::text,
         .fallback = "",
         .meaning = "libpq's krbsrvname: Kerberos service name of the server.",
         .max = 255,
         .identity = spi::Identity::apart},
        {.name = "application_name",
         .type = spi::OptionType::text,
         .fallback = "holdfast",
         .meaning = "libpq's application_name, shown in pg_stat_activity.",
         .max = static_cast<long long>(longest_identifier),
         .identity = spi::Identity::apart},
        {.name = "keepalive",
         .type = spi::OptionType::duration,
         .fallback = "30s",
         .meaning = "Idle time after which client and server probe their TCP connection. Without "
                    "an answer they close it after the same time again.",
         .min = 1000,
         .max = 7'200'000,
         .identity = spi::Identity::apart},
    };
}

}  // namespace

Options::Options(const spi::Settings& s)
    : hosts(s.hosts.empty() ? std::vector<spi::Endpoint>{{"127.0.0.1", 5432}} : s.hosts),
      socket(s.text("socket")),
      promotes_synchronous(s.text("promotes") == "synchronous"),
      database(sql::database_of(s.path)),
      user(s.user),
      password(s.password),
      ttl(s.duration("ttl")),
      prefix(s.text("namespace")),
      schema(s.text("schema")),
      display(s.display()),
      silent(std::chrono::ceil<std::chrono::seconds>(s.duration("keepalive"))) {
    for (spi::Endpoint& host : hosts)
        host.host = sql::bare_host(host.host);
    for (const std::string& text : s.list("listen"))
        if (auto host = spi::parse_endpoint(text)) {
            if (host->port == 0) host->port = 5432;
            listen.push_back(std::move(*host));
        }
    // What has no default here is left to libpq, which asks its environment.
    const bool gss_chosen = s.given("gssencmode") || std::getenv("PGGSSENCMODE") == nullptr;
    for (const char* option : passed_on)
        if (!s.text(option).empty() && (gss_chosen || option != std::string_view("gssencmode")))
            libpq.emplace_back(option, s.text(option));
    const std::string mode = default_of("sslmode");
    tls_chosen = s.given("sslmode") || (!mode.empty() && mode != "prefer");
    libpq.emplace_back("keepalives_idle", std::to_string(silent.count()));
    libpq.emplace_back("keepalives_interval", std::to_string(probe_every().count()));
    libpq.emplace_back("keepalives_count", std::to_string(probes));
}

const std::vector<spi::OptionSpec>& option_table() {
    static const std::vector<spi::OptionSpec> table = [] {
        auto all = table_options();
        for (auto some : {failover_options(), tls_options(), session_options()})
            all.insert(all.end(), some.begin(), some.end());
        return all;
    }();
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    if (sql::database_of(s.path).find('/') != std::string::npos)
        d.add(s.display(), "The path must be the name of one database.",
              "Write for example postgresql://host/app.");
    if (!s.text("socket").empty() && s.hosts.size() > 1)
        d.add(s.display(), "A socket leads to one server, and the URL names several hosts.",
              "Give either the socket or the hosts.");
    // libpq would connect there, and without TLS.
    if (!s.text("socket").empty() && !default_of("hostaddr").empty())
        d.add(s.display(),
              "PGHOSTADDR, or the service of PGSERVICE, names an address, to which libpq would "
              "connect instead of the socket.",
              "Unset it for this program, or give the host in the URL instead of the socket.");
    for (const std::string& text : s.list("listen")) {
        std::string problem;
        if (!spi::parse_endpoint(text, &problem))
            d.add(s.display(), "A host of listen " + problem + ".",
                  "Write listen=HOST:PORT, or [ADDRESS]:PORT for IPv6.");
    }
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

std::string identity(const spi::Settings& s) {
    const Options o(s);
    const std::string user = given_or_default(o.user, "user");
    const std::string database = given_or_default(o.database, "dbname");
    spi::IdentityText text;
    if (o.socket.empty())
        text.hosts(o.hosts);
    else
        text.socket(o.socket, o.hosts.front().port);
    text.part("database", database.empty() ? user : database);
    // search_path may be that of the user, and its first schema may have the user's name.
    if (o.schema.empty())
        text.open("schema", user + ' ' + default_of("options"));
    else
        text.part("schema", o.schema);
    return text.text();
}

Capabilities promises() {
    using enum Capability;
    return {SafetyClass::b,
            {fencing, notified, cross_process, cross_host, renewal, previous_holder, inspect, list,
             break_lock, survives_client_clock_jump, survives_server_crash, shared, semaphore,
             downgrade, lock_delay, min_hold, release_request}};
}

}  // namespace holdfast::postgresql
