#include "server.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::resp {

std::optional<long long> database_of(std::string_view path) noexcept {
    if (path.starts_with('/')) path.remove_prefix(1);
    if (path.empty()) return 0;
    long long number = 0;
    const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
    const bool whole = error == std::errc() && end == path.data() + path.size();
    // As many as a server can be told of (databases).
    const bool possible = number >= 0 && number <= std::numeric_limits<std::int32_t>::max();
    return whole && possible ? std::optional(number) : std::nullopt;
}

Target::Target(const spi::Settings& s, bool time)
    : host(s.hosts.empty() ? "127.0.0.1" : s.hosts.front().host),
      port(s.hosts.empty() ? std::uint16_t{6379} : s.hosts.front().port),
      database(database_of(s.path).value_or(0)),
      user(s.user),
      password(s.password),
      tls(s, s.scheme.starts_with("rediss")),
      secure(secure_scheme(s.scheme) + "://"),
      display(s.display()),
      client_name(s.text("client_name")),
      asks_time(time) {}

std::string secure_scheme(std::string_view scheme) {
    constexpr std::string_view plain = "redis", secure = "rediss";
    if (scheme.starts_with(secure) || !scheme.starts_with(plain)) return std::string(scheme);
    return std::string(secure).append(scheme.substr(plain.size()));
}

std::string as_without_tls(const Target& t) {
    return ", as of a port without TLS" + (t.clear.empty() ? t.clear : " (" + t.clear + ")");
}

const spi::OptionSpec& client_name_option() {
    static constexpr spi::OptionSpec row{
        .name = "client_name",
        .type = spi::OptionType::text,
        .fallback = "holdfast",
        .meaning = "Name of the client's connections, shown by CLIENT LIST.",
        .max = 63,
        .identity = spi::Identity::apart};
    return row;
}

void check_client_name(const spi::Settings& s, Diagnostics& d) {
    const auto name = s.text("client_name");
    if (std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; })) return;
    d.add(s.display(), "client_name may have no blanks, and printable ASCII only.",
          "Write for example client_name=billing.");
}

namespace {

std::optional<tcp::endpoint> address_of(const Target& t) {
    error_code named;
    const auto address = asio::ip::make_address(t.host, named);
    if (named || t.port == 0) return std::nullopt;
    return tcp::endpoint(address, t.port);
}

}  // namespace

Server::Server(Target t)
    : target(std::move(t)),
      where(std::make_shared<NamedHost>(*this)),
      named_(target.port != 0 && !address_of(target)) {}

std::optional<Server::Reached> Server::reached() const {
    {
        const std::lock_guard hold(mutex_);
        if (reached_) return reached_;
    }
    if (const auto address = address_of(target))
        return Reached{*address, target.host, target.display};
    return std::nullopt;
}

std::optional<Server::Reached> Server::reached_for_lane() const {
    if (doubted_) return std::nullopt;
    return reached();
}

void Server::reached(const tcp::endpoint& e, Location& place) {
    const std::string from = serving();
    {
        const std::lock_guard hold(mutex_);
        if (place.move != moves()) return;
        const auto left = std::exchange(reached_, Reached{e, place.host, place.text});
        doubted_ = false;
        if (!left || left->endpoint == e) return;
        move();
        place.move = moves();
    }
    if (on_move) on_move(from, serving());
}

void Server::moved() {
    const std::lock_guard hold(mutex_);
    reached_.reset();
    move();
}

void Server::move() {
    confirmed_ = boot_clock::time_point::min();
    moves_.fetch_add(1, std::memory_order_release);
}

std::string Server::serving() const {
    const std::lock_guard hold(mutex_);
    if (!reached_) return {};
    return spi::text_of({reached_->host, reached_->endpoint.port()},
                        reached_->endpoint.address().to_string());
}

boot_clock::time_point Server::confirmed(unsigned move) const {
    const std::lock_guard hold(mutex_);
    return move == moves() ? confirmed_ : boot_clock::time_point::min();
}

void Server::confirm(boot_clock::time_point since) {
    const std::lock_guard hold(mutex_);
    confirmed_ = since;
}

std::vector<std::string> exposures(const Target& t) {
    return tls::exposures(t.tls, !t.password.empty(), spi::on_this_machine(t.host), t.display,
                          t.secure);
}

}  // namespace holdfast::resp
