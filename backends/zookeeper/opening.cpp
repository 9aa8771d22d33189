// How a Handle comes to its servers: names resolved without blocking, then the client library's
// handle.
#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <random>
#include <system_error>

#include "client_library.hpp"
#include "errors.hpp"
#include "handle.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::zookeeper {

using boost::asio::ip::tcp;

namespace {

/// For name servers: less than callers have for one request, and than a session without a server
/// can spare.
constexpr milliseconds patience{750};

}  // namespace

milliseconds some_of(milliseconds most) {
    thread_local std::minstd_rand random(std::random_device{}());
    return milliseconds(
        1 + static_cast<long long>(
                random() % static_cast<unsigned long>(std::max<long long>(most.count(), 1))));
}

std::string hosts_text(const Options& o) {
    std::string out;
    for (const spi::Endpoint& e : o.hosts) {
        if (!out.empty()) out += ", ";
        out += text_of(e);
    }
    return out;
}

std::string Handle::server() const {
    const char* const now = connected() ? zoo_get_current_server(zh_) : nullptr;
    if (now == nullptr) return {};
    std::string known = known_as(now);
    return known.empty() ? now : known;
}

std::string Handle::known_as(std::string_view server) const {
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
        const spi::Endpoint& host = shared_->options.hosts[i];
        for (const auto& a : addresses_[i])
            if (spi::text_of({a.to_string(), host.port}) == server)
                return spi::text_of(host, a.to_string());
    }
    return {};
}

void Handle::start() {
    if (started_ || closing_) return;
    started_ = true;
    resolve(false);
}

void Handle::resolve(bool aside) {
    std::vector<std::string> hosts;
    for (const spi::Endpoint& e : shared_->options.hosts)
        hosts.push_back(e.host);
    // A name that is unknown, or not answered in time, does not keep the others away.
    auto looking = shared_->names.look_up(std::move(hosts), boot_clock::now() + patience);
    boost::asio::co_spawn(shared_->engine, std::move(looking),
                          [weak = weak_from_this(), aside](
                              const std::exception_ptr&,
                              const std::vector<result<spi::HostNames::Addresses>>& answers) {
                              if (const auto self = weak.lock()) self->resolved(answers, aside);
                          });
}

void Handle::resolved(const std::vector<result<spi::HostNames::Addresses>>& answers, bool aside) {
    if (closing_ || over_) return;
    const auto& hosts = shared_->options.hosts;
    addresses_.resize(hosts.size());
    error_code ec = boost::asio::error::no_memory;
    std::vector<tcp::endpoint> found;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        // Without an answer the addresses of before are better than none.
        if (i < answers.size() && answers[i]) addresses_[i] = *answers[i];
        if (i < answers.size() && !answers[i]) ec = answers[i].error();
        for (const auto& address : addresses_[i])
            found.emplace_back(address, hosts[i].port);
    }
    if (found.empty()) {
        trouble_ = {make(Error::unresolved),
                    hosts_text(shared_->options) + ": " + spi::HostNames::words(ec)};
        retry_pending_ = true;
        arm_timer(some_of(milliseconds(1000)));
        return;
    }
    servers_ = found.size();
    std::string servers;
    for (const tcp::endpoint& e : found) {
        if (!servers.empty()) servers += ',';
        // No brackets around IPv6: the client library takes what follows the last colon as port.
        servers += e.address().to_string() + ":" + std::to_string(e.port());
    }
    if (zh_ == nullptr) return open(servers);
    // Connected to one that is still meant, it stays there, and so does the list.
    const bool elsewhere =
        servers != server_list_ && (!connected_ || known_as(zoo_get_current_server(zh_)).empty());
    if (elsewhere) {
        server_list_ = servers;
        zoo_set_servers(zh_, servers.c_str());
    }
    if (elsewhere || !aside) turn(0);
}

void Handle::open(const std::string& servers) {
    // The client library writes to stderr by itself, and formats into one buffer for all threads.
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    server_list_ = servers;
    zh_ = zookeeper_init2(servers.c_str(), &Handle::on_event, static_cast<int>(asked_.count()),
                          nullptr, this, ZOO_NO_LOG_CLIENTENV, [](const char*) {});
    if (zh_ == nullptr) {
        trouble_ = {make(Error::unreachable), std::generic_category().message(errno)};
        retry_pending_ = true;
        return arm_timer(milliseconds(1000));
    }
    zoo_set_servers_resolution_delay(zh_, -1);
    const Options& o = shared_->options;
    if (!o.user.empty()) {
        const auto password = o.password.read();
        if (!password) {
            trouble_ = password.error();
            over_ = true;
            if (listener_ != nullptr) listener_->ended(ZAUTHFAILED);
            return;
        }
        const std::string both = o.user + ":" + *password;
        // Refused before the first connection only: it is kept, and sent at every connect.
        zoo_add_auth(zh_, "digest", both.data(), static_cast<int>(both.size()), nullptr, nullptr);
    }
    turn(0);
}

}  // namespace holdfast::zookeeper
