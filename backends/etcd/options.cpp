#include "options.hpp"

#include <algorithm>

#include "holdfast/spi/identity.hpp"

namespace holdfast::etcd {
namespace {

std::string_view without_end(std::string_view path) noexcept {
    while (path.ends_with('/'))
        path.remove_suffix(1);
    return path;
}

bool proper_path(std::string_view path) noexcept {
    if (path.size() > 512 || path.find("//") != path.npos) return false;
    return std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Options::Options(const spi::Settings& s)
    : hosts(s.hosts),
      root(without_end(s.path)),
      prefix(s.text("namespace")),
      user(s.user),
      password(s.password),
      tls(s, s.scheme == "etcds"),
      robust(s.flag("robust")),
      ttl(s.duration("ttl")),
      request_timeout(s.duration("request_timeout")),
      display(s.display()) {
    if (root.empty()) root = "/holdfast";
    root += '/';
}

const std::vector<spi::OptionSpec>& option_table() {
    static const std::vector<spi::OptionSpec> table = tls::with_options(
        {{.name = "robust",
          .type = spi::OptionType::boolean,
          .fallback = "no",
          .meaning = "Report the state of the previous holder (previous_holder). Costs one more "
                     "key per grant, in the same request.",
          .identity = spi::Identity::apart}});
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    if (!proper_path(s.path))
        d.add("", "The path must be the beginning of a key: /locks or /app/locks.",
              "Use printable characters without blanks, and no empty part.");
    tls::check(s, "etcd", "etcds", d);
    spi::check_credentials(s, true, d);
}

std::string identity(const spi::Settings& s) {
    return spi::IdentityText().hosts(s.hosts).part("path", Options(s).root).text();
}

Capabilities promises(const spi::Settings& s) {
    using enum Capability;
    const bool several = s.hosts.size() >= 3;
    Capabilities c{several ? SafetyClass::a : SafetyClass::b,
                   {fencing, fifo, notified, cross_process, cross_host, renewal, inspect, list,
                    break_lock, survives_client_clock_jump, survives_server_crash, shared,
                    semaphore, downgrade, lock_delay, release_request, watch}};
    c.set(survives_failover, several);
    c.set(previous_holder, s.flag("robust"));
    return c;
}

}  // namespace holdfast::etcd
