// How a Handle comes to its servers: names resolved without blocking, then the client library's
// handle.
#include <cerrno>
#include <random>
#include <system_error>

#include "client_library.hpp"
#include "errors.hpp"
#include "handle.hpp"

namespace holdfast::zookeeper {

using boost::asio::ip::tcp;

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
        out += e.host + ":" + std::to_string(e.port);
    }
    return out;
}

void Handle::start() {
    if (started_ || closing_) return;
    started_ = true;
    resolve();
}

void Handle::resolve() {
    // All hosts, one after the other; one that is unknown does not keep the others away.
    struct Round {
        std::size_t next = 0;
        std::vector<tcp::endpoint> found;
        error_code failed;
    };
    auto round = std::make_shared<Round>();
    auto step = std::make_shared<std::function<void()>>();
    *step = [weak = weak_from_this(), round, weak_step = std::weak_ptr(step)] {
        const auto self = weak.lock();
        const auto again = weak_step.lock();
        if (!self || !again || self->closing_) return;
        const auto& hosts = self->shared_->options.hosts;
        while (round->next < hosts.size()) {
            const spi::Endpoint& e = hosts[round->next++];
            error_code ec;
            const auto address = boost::asio::ip::make_address(e.host, ec);
            if (!ec) {
                round->found.emplace_back(address, e.port);
                continue;
            }
            self->resolver_.async_resolve(
                e.host, std::to_string(e.port),
                [round, again](error_code failed, const tcp::resolver::results_type& all) {
                    if (failed) round->failed = failed;
                    for (const auto& entry : all)
                        round->found.push_back(entry.endpoint());
                    (*again)();
                });
            return;
        }
        self->resolved(std::move(round->found), round->failed);
    };
    (*step)();
}

void Handle::resolved(std::vector<tcp::endpoint> found, error_code ec) {
    if (closing_ || over_) return;
    if (found.empty()) {
        trouble_ = hosts_text(shared_->options) + ": " + ec.message();
        trouble_code_ = make(Error::unresolved);
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
    if (servers != server_list_ && !connected_) {
        server_list_ = servers;
        zoo_set_servers(zh_, servers.c_str());
    }
    turn(0);
}

void Handle::open(const std::string& servers) {
    // The client library writes to stderr by itself, and formats into one buffer for all threads.
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    server_list_ = servers;
    zh_ = zookeeper_init2(servers.c_str(), &Handle::on_event, static_cast<int>(asked_.count()),
                          nullptr, this, ZOO_NO_LOG_CLIENTENV, [](const char*) {});
    if (zh_ == nullptr) {
        trouble_ = std::generic_category().message(errno);
        trouble_code_ = make(Error::unreachable);
        retry_pending_ = true;
        return arm_timer(milliseconds(1000));
    }
    zoo_set_servers_resolution_delay(zh_, -1);
    const Options& o = shared_->options;
    if (!o.user.empty()) {
        std::string why;
        const auto password = o.password.read(&why);
        if (!password) {
            trouble_ = why;
            trouble_code_ = password.error();
            over_ = true;
            if (ear_ != nullptr) ear_->ended(ZAUTHFAILED);
            return;
        }
        const std::string both = o.user + ":" + *password;
        // Refused before the first connection only: it is kept, and sent at every connect.
        zoo_add_auth(zh_, "digest", both.data(), static_cast<int>(both.size()), nullptr, nullptr);
    }
    turn(0);
}

}  // namespace holdfast::zookeeper
