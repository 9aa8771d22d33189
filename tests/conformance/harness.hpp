// What the suite needs of a backend: where it is, and how to break it. One Harness serves the whole
// program; which one is chosen by HOLDFAST_TEST_BACKEND.
#pragma once
#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/zookeeper_server.hpp"

namespace suite {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;

class Harness {
public:
    virtual ~Harness() = default;
    /// The one under test. Throws when HOLDFAST_TEST_BACKEND names none.
    static Harness& instance();
    static std::vector<std::string> names();

    const std::string& name() const noexcept { return name_; }
    /// Straight to the server; `query` is appended ("ttl=1s&namespace=x").
    std::string url(const std::string& query = {}) const { return join(base_url(), query); }
    /// Through the fault proxy. Only where proxy() is not null.
    std::string proxied_url(const std::string& query = {}) const {
        return join(proxied_base_url(), query);
    }
    virtual lab::Proxy* proxy() { return nullptr; }
    /// The server, where it is Redis.
    virtual lab::RedisServer* redis() { return nullptr; }
    /// Kills the server process. False where there is none.
    virtual bool kill_server() { return false; }
    /// Starts it again, ending it first where it runs. False where there is none.
    virtual bool restart_server(lab::Data) { return false; }
    virtual lab::ZooKeeperServers* zookeeper() { return nullptr; }
    /// Grants and tokens outlive a killed server as this harness runs it.
    virtual bool durable() const { return false; }
    /// Other processes can reach the same locks.
    virtual bool shared_between_processes() const { return true; }
    /// Puts something that is not a lock under the name, where the backend has such a thing.
    virtual bool plant_stranger(const std::string&) { return false; }
    /// Removes all traces of the name behind the library's back, as an operator or a crash might,
    /// the token's memory included where that is possible.
    virtual bool erase_behind(const std::string&) { return false; }

protected:
    explicit Harness(std::string name) : name_(std::move(name)) {}
    virtual std::string base_url() const = 0;
    virtual std::string proxied_base_url() const { return base_url(); }

private:
    std::string join(std::string url, const std::string& query) const {
        if (query.empty()) return url;
        return url + (url.find('?') == std::string::npos ? '?' : '&') + query;
    }
    std::string name_;
};

}  // namespace suite
