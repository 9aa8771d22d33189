// ZooKeeper servers, simulated or real, and clients of their wire protocol: fidelity asks the same
// of both.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel.hpp"

namespace holdfast::sim {

/// A connection to one server. It ends with this object.
class ZkLink {
public:
    virtual ~ZkLink() = default;
    virtual void send(const std::string& bytes) = 0;
    /// What has come since it was last taken.
    virtual std::string take() = 0;
    /// The server has closed it, or was never there.
    virtual bool ended() const = 0;
};

/// One server or an ensemble. Faults last for a given time, by the same clock as `now`.
class ZkBed {
public:
    virtual ~ZkBed() = default;
    virtual std::unique_ptr<ZkLink> connect(std::size_t server) = 0;
    virtual Nanos now() = 0;
    /// Until there may be something to take, or that moment has come.
    virtual void pass(Nanos until) = 0;
    /// Who leads, when all faults are over.
    virtual std::optional<std::size_t> leader() = 0;
    virtual void stop(std::size_t server) = 0;
    virtual void start(std::size_t server) = 0;
    virtual void pause(std::size_t server, Nanos lasts) = 0;
    /// It and the others do not hear each other; clients reach all.
    virtual void isolate(std::size_t server, Nanos lasts) = 0;
};

struct ZkBedOptions {
    std::size_t servers = 1;
    int tick_ms = 2000, sync_limit = 5;
};
std::unique_ptr<ZkBed> make_simulated_bed(const ZkBedOptions&, std::uint64_t seed);
/// Starts real servers: three of them in network namespaces of their own, for which this process
/// needs namespaces as well. Errors: lab::LabError.
std::unique_ptr<ZkBed> make_real_bed(const ZkBedOptions&);

/// One frame from a server.
struct ZkWord {
    enum class Kind : std::uint8_t { greeting, answer, event } kind;
    std::int32_t xid = 0, error = 0;
    std::int64_t zxid = 0;
    std::string body = {};   ///< of an answer
    std::int32_t event = 0;  ///< what happened to `path`
    std::string path = {};
};

/// A client and its session, which may outlive its connections.
class ZkClient {
public:
    explicit ZkClient(ZkBed& bed) : bed_(bed) {}

    /// Connects, and asks for its session again, or for a new one where it has none.
    void dial(std::size_t server, int timeout_ms);
    void forget() { session = 0, password.assign(16, 0), seen = 0; }
    void hang_up() { link_.reset(); }
    bool has_link() const noexcept { return link_ != nullptr; }
    bool ended() const { return !link_ || link_->ended(); }
    /// Hands out its connection, which stays open.
    std::unique_ptr<ZkLink> put_aside() { return std::move(link_); }
    /// Answers its number.
    std::int32_t ask(std::int32_t type, const std::string& body);
    /// What has come, in its order. A greeting changes `session`, `password` and `timeout_ms`.
    std::vector<ZkWord> read();

    std::int64_t session = 0, seen = 0;  ///< seen: the last transaction that it was shown
    std::string password = std::string(16, 0);
    std::int32_t timeout_ms = 0;
    Nanos sent = 0;  ///< just before it sent something last

private:
    ZkBed& bed_;
    std::unique_ptr<ZkLink> link_;
    std::string in_;
    bool greeted_ = false;
    std::int32_t xid_ = 0;
};

// --- bodies of requests
std::string zk_create(const std::string& path, const std::string& data, std::int32_t flags);
std::string zk_remove(const std::string& path, std::int32_t version = -1);
std::string zk_set(const std::string& path, const std::string& data, std::int32_t version = -1);
std::string zk_read(const std::string& path, bool watch);

}  // namespace holdfast::sim
