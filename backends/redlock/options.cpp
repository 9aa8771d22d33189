#include "options.hpp"

#include <algorithm>
#include <charconv>

#include "../resp/server.hpp"
#include "../tls/options.hpp"
#include "holdfast/spi/identity.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::redlock {
namespace {

constexpr std::size_t fewest = 3, most = 31;

std::string_view database_of(std::string_view path) noexcept {
    if (path.starts_with('/')) path.remove_prefix(1);
    return path;
}

bool is_database(std::string_view text) noexcept {
    return text.find_first_not_of("0123456789") == text.npos && text.size() < 10;
}

std::string name_of_hosts(const spi::Settings& s) {
    std::vector<std::string> all;
    for (const spi::Endpoint& e : s.hosts)
        all.push_back(text_of(e));
    std::sort(all.begin(), all.end());
    std::string out;
    for (const std::string& one : all)
        out += (out.empty() ? "" : ",") + one;
    return out;
}

std::string name_of_set(const spi::Settings& s) {
    const std::string_view given = s.text("node_set");
    if (given.empty()) return name_of_hosts(s);
    return std::string(given) + "/" + std::to_string(s.hosts.size());
}

milliseconds silence(const spi::Settings& s) {
    if (!s.text("node_timeout").empty()) return s.duration("node_timeout");
    return std::clamp(s.duration("request_timeout") / 2, milliseconds(5), milliseconds(250));
}

}  // namespace

Options::Options(const spi::Settings& s)
    : fencing(s.flag("fencing")),
      durable(s.flag("durable")),
      ttl(s.duration("ttl")),
      max_ttl(s.duration("max_ttl")),
      patience(silence(s)),
      connecting(std::max(s.duration("request_timeout"), patience)),
      prefix(s.text("namespace")),
      set(name_of_set(s)),
      tls(s.scheme == "redlocks") {}

spi::Settings node_settings(const spi::Settings& s, const spi::Endpoint& e) {
    spi::Settings one = s;
    one.scheme = s.scheme == "redlocks" ? "rediss" : "redis";
    one.hosts = {e};
    return one;
}

const std::vector<spi::OptionSpec>& option_table() {
    using spi::OptionType;
    static const std::vector<spi::OptionSpec> table = tls::with_options({
        {.name = "fencing",
         .type = OptionType::boolean,
         .fallback = "on",
         .meaning = "on: every grant has a fencing token that a majority of the nodes keeps. off: "
                    "only SET NX PX and compare-and-delete, the published algorithm; no token.",
         .identity = spi::Identity::apart},
        {.name = "durable",
         .type = OptionType::boolean,
         .fallback = "no",
         .meaning = "The nodes keep every write in a crash (appendonly yes, appendfsync always). "
                    "Otherwise a node does not vote until max_ttl after its start. The nodes "
                    "refuse clients with a different value.",
         .identity = spi::Identity::apart},
        {.name = "max_ttl",
         .type = OptionType::duration,
         .fallback = "60s",
         .meaning = "Longest ttl that any client of these nodes may use. The nodes refuse clients "
                    "with a different value.",
         .min = 1000,
         .max = 86'400'000,
         .identity = spi::Identity::apart},
        {.name = "node_timeout",
         .type = OptionType::duration,
         .fallback = "",
         .meaning = "A node that does not answer for this long counts as down. By default half of "
                    "request_timeout, at most 250ms.",
         .min = 5,
         .max = 10'000,
         .identity = spi::Identity::apart},
        {.name = "node_set",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "Name of this set of nodes, for clients that write different lists of hosts. "
                    "By default the list itself. A node refuses clients of another set.",
         .max = 128,
         .identity = spi::Identity::part},
        resp::client_name_option(),
    });
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    const std::size_t n = s.hosts.size();
    if (n < fewest)
        d.add(s.display(), "redlock needs at least three nodes, not " + std::to_string(n) + ".",
              n == 1 ? "For one server write redis://HOST:PORT. For a majority name three or five "
                       "independent servers: redlock://H1:PORT,H2:PORT,H3:PORT."
                     : "Name three or five independent servers: "
                       "redlock://H1:PORT,H2:PORT,H3:PORT.");
    if (n > most)
        d.add(s.display(), "redlock takes at most 31 nodes, not " + std::to_string(n) + ".",
              "Three or five are usual.");
    if (!is_database(database_of(s.path)))
        d.add(s.display(), "The path must be the number of a database.",
              "Write for example redlock://h1,h2,h3/2, or leave the path out for database 0.");
    if (s.duration("ttl") > s.duration("max_ttl"))
        d.add(s.display(),
              "ttl = " + std::string(s.text("ttl")) +
                  " is longer than max_ttl = " + std::string(s.text("max_ttl")) + ".",
              "Lower ttl, or raise max_ttl for every client of these nodes.");
    tls::check(s, "redlock", "redlocks", d);
    resp::check_client_name(s, d);
    spi::check_credentials(s, false, d);
}

std::string identity(const spi::Settings& s) {
    spi::IdentityText text;
    text.part("database", std::to_string(std::stoll("0" + std::string(database_of(s.path)))));
    // Clients of one named set may write its hosts differently.
    if (!s.text("node_set").empty())
        text.part("node_set", name_of_set(s)).open("nodes", name_of_hosts(s));
    else
        text.hosts(s.hosts);
    return text.text();
}

Capabilities promises(const spi::Settings& s) {
    using enum Capability;
    Capabilities c{SafetyClass::c,
                   {cross_process, cross_host, renewal, inspect, list, break_lock,
                    survives_client_clock_jump}};
    // Without a token neither do nodes see who came before, nor is there one for readers.
    if (s.flag("fencing"))
        for (const Capability x : {fencing, notified, shared, downgrade, lock_delay, min_hold})
            c.set(x);
    return c;
}

}  // namespace holdfast::redlock
