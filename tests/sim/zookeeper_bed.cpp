#include "zookeeper_bed.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address_v4.hpp>
#include <chrono>
#include <functional>
#include <holdfast/lab/zookeeper_server.hpp>
#include <stdexcept>
#include <utility>

#include "../support/net.hpp"
#include "zookeeper.hpp"
#include "zookeeper_wire.hpp"

namespace holdfast::sim {
namespace {

// --- simulated

class SimulatedLink final : public ZkLink {
public:
    explicit SimulatedLink(Route& r) : socket_(std::make_shared<Socket>()) {
        socket_->connection = std::make_shared<Connection>(r, socket_);
        socket_->connection->open();
    }
    ~SimulatedLink() override { socket_->connection->client_closes(); }
    void send(const std::string& bytes) override { socket_->connection->send(bytes); }
    std::string take() override { return std::exchange(socket_->inbox, {}); }
    bool ended() const override { return socket_->ended && socket_->inbox.empty(); }

private:
    std::shared_ptr<Socket> socket_;
};

class SimulatedBed final : public ZkBed {
public:
    SimulatedBed(const ZkBedOptions& o, std::uint64_t seed)
        : kernel_(seed), servers_(kernel_, o.servers, o.tick_ms * ms, o.sync_limit) {
        servers_.slowest = 2 * ms;
        servers_.dropped_containers = 0;
        client_.name = "client";
        for (std::size_t i = 0; i < o.servers; ++i)
            routes_.push_back(std::make_unique<Route>(kernel_, client_, servers_.server(i)));
    }
    std::unique_ptr<ZkLink> connect(std::size_t server) override {
        return std::make_unique<SimulatedLink>(*routes_.at(server));
    }
    Nanos now() override { return kernel_.now(); }
    void pass(Nanos until) override {
        if (until > alarm_) kernel_.at(alarm_ = until, [] {});
        kernel_.step();
    }
    std::optional<std::size_t> leader() override { return servers_.leader(); }
    void stop(std::size_t i) override { servers_.stop(i); }
    void start(std::size_t i) override { servers_.start(i); }
    void pause(std::size_t i, Nanos lasts) override { servers_.pause(i, kernel_.now() + lasts); }
    void isolate(std::size_t i, Nanos lasts) override {
        servers_.isolate(i, kernel_.now() + lasts);
    }

private:
    Kernel kernel_;
    ZkEnsemble servers_;
    Process client_;
    std::vector<std::unique_ptr<Route>> routes_;
    Nanos alarm_ = 0;
};

// --- real

class RealLink final : public ZkLink {
public:
    /// Is in the list of all as long as it lives.
    RealLink(std::vector<RealLink*>& all, const std::string& host, std::uint16_t port) : all_(all) {
        all_.push_back(this);
        fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd_ < 0) throw std::runtime_error("no socket");
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(boost::asio::ip::make_address_v4(host).to_uint());
        ended_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0;
    }
    RealLink(const RealLink&) = delete;
    RealLink& operator=(const RealLink&) = delete;
    ~RealLink() override {
        std::erase(all_, this);
        ::close(fd_);
    }
    void send(const std::string& bytes) override {
        if (!ended_) static_cast<void>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    }
    std::string take() override {
        std::string out;
        std::array<char, 4096> some{};
        while (!ended_) {
            const auto n = ::recv(fd_, some.data(), some.size(), MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
            ended_ = n <= 0;
            if (n > 0) out.append(some.data(), static_cast<std::size_t>(n));
        }
        return out;
    }
    bool ended() const override { return ended_; }
    int fd() const noexcept { return fd_; }

private:
    std::vector<RealLink*>& all_;
    int fd_ = -1;
    bool ended_ = false;
};

class RealBed final : public ZkBed {
public:
    explicit RealBed(const ZkBedOptions& o) : servers_(lab::ZooKeeperServers::start(options(o))) {}
    std::unique_ptr<ZkLink> connect(std::size_t server) override {
        return std::make_unique<RealLink>(links_, servers_.host(server), servers_.port(server));
    }
    Nanos now() override {
        return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
    void pass(Nanos until) override {
        for (const Later& one : later_)
            until = std::min(until, one.moment);
        std::vector<pollfd> all;
        for (const RealLink* one : links_)
            if (!one->ended()) all.push_back({one->fd(), POLLIN, 0});
        const Nanos left = std::clamp<Nanos>((until - now() + ms - 1) / ms, 0, 1000);
        ::poll(all.data(), all.size(), static_cast<int>(left));
        while (!later_.empty() && later_.front().moment <= now()) {
            const auto what = std::move(later_.front().what);
            later_.erase(later_.begin());
            what();
        }
    }
    std::optional<std::size_t> leader() override {
        for (const Later& one : std::exchange(later_, {}))
            one.what();
        servers_.wait_ready();
        return servers_.leader();
    }
    void stop(std::size_t i) override { servers_.kill(i); }
    void start(std::size_t i) override { servers_.restart(i); }
    void pause(std::size_t i, Nanos lasts) override {
        servers_.pause(i);
        afterwards(lasts, [this, i] { servers_.resume(i); });
    }
    void isolate(std::size_t i, Nanos lasts) override {
        testing::Net::isolate(i, false);
        afterwards(lasts, [] { testing::Net::heal(); });
    }

private:
    struct Later {
        Nanos moment;
        std::function<void()> what;
    };
    lab::ZooKeeperOptions options(const ZkBedOptions& o) {
        lab::ZooKeeperOptions out;
        out.count = o.servers;
        out.tick = std::chrono::milliseconds(o.tick_ms);
        out.sync_limit = o.sync_limit;
        // Neither syncs, nor containers that go by themselves.
        out.java = {"-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=86400000"};
        if (o.servers == 1) return out;
        net_.emplace();
        for (std::size_t i = 0; i < o.servers; ++i) {
            out.hosts.push_back(testing::Net::host(i));
            out.launchers.push_back(testing::Net::launcher(i));
        }
        return out;
    }
    void afterwards(Nanos lasts, std::function<void()> what) {
        later_.push_back({now() + lasts, std::move(what)});
        std::sort(later_.begin(), later_.end(),
                  [](const Later& a, const Later& b) { return a.moment < b.moment; });
    }
    std::optional<testing::Net> net_;
    lab::ZooKeeperServers servers_;
    std::vector<RealLink*> links_;
    std::vector<Later> later_;
};

}  // namespace

std::unique_ptr<ZkBed> make_simulated_bed(const ZkBedOptions& o, std::uint64_t seed) {
    return std::make_unique<SimulatedBed>(o, seed);
}
std::unique_ptr<ZkBed> make_real_bed(const ZkBedOptions& o) {
    return std::make_unique<RealBed>(o);
}

// --- a client

void ZkClient::dial(std::size_t server, int timeout) {
    link_.reset();
    in_.clear();
    greeted_ = false;
    link_ = bed_.connect(server);
    wire::Writer w;
    w.int32(0).int64(seen).int32(timeout).int64(session).text(password).flag(false);
    sent = bed_.now();
    link_->send(wire::framed(w.bytes));
}

std::int32_t ZkClient::ask(std::int32_t type, const std::string& body) {
    // What the client library takes for numbers of these.
    const std::int32_t xid = type == wire::ping                ? wire::xid_of_pings
                             : type == wire::set_watches_again ? -8
                                                               : ++xid_;
    wire::Writer w;
    w.int32(xid).int32(type);
    sent = bed_.now();
    if (link_) link_->send(wire::framed(w.bytes + body));
    return xid;
}

std::vector<ZkWord> ZkClient::read() {
    std::vector<ZkWord> out;
    if (!link_) return out;
    in_ += link_->take();
    for (;;) {
        if (in_.size() < 4) return out;
        const auto size = static_cast<std::size_t>(wire::Reader(in_).int32());
        if (in_.size() < 4 + size) return out;
        const std::string frame = in_.substr(4, size);
        in_.erase(0, 4 + size);
        wire::Reader r(frame);
        ZkWord word{};
        if (!std::exchange(greeted_, true)) {
            word.kind = ZkWord::Kind::greeting;
            r.int32();
            timeout_ms = r.int32();
            session = r.int64();
            password = r.text();
        } else {
            word.xid = r.int32();
            word.zxid = r.int64();
            word.error = r.int32();
            word.kind = ZkWord::Kind::answer;
            if (word.xid == wire::xid_of_events) {
                word.kind = ZkWord::Kind::event;
                word.event = r.int32();
                r.int32();
                word.path = r.text();
            } else {
                word.body = frame.substr(16);
                seen = std::max(seen, word.zxid);
            }
        }
        out.push_back(std::move(word));
    }
}

std::string zk_create(const std::string& path, const std::string& data, std::int32_t flags) {
    wire::Writer w;
    w.text(path).text(data).int32(1).int32(31).text("world").text("anyone").int32(flags);
    return w.bytes;
}
std::string zk_remove(const std::string& path, std::int32_t version) {
    return wire::Writer().text(path).int32(version).bytes;
}
std::string zk_set(const std::string& path, const std::string& data, std::int32_t version) {
    return wire::Writer().text(path).text(data).int32(version).bytes;
}
std::string zk_read(const std::string& path, bool watch) {
    return wire::Writer().text(path).flag(watch).bytes;
}

}  // namespace holdfast::sim
