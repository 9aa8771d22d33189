// Five real nodes, and clients of them.
#pragma once
#include <future>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace redlock_tests {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using holdfast::errc;
using lab::Data;
using lab::RedisOptions;
using lab::RedisServer;
using test_support::cap;
using test_support::hold;
using test_support::holders_of;
using test_support::lock_of;
using test_support::open;
using test_support::waiters_of;

inline hf::boot_clock::time_point now() {
    return hf::boot_clock::now();
}
inline long long ms(hf::boot_clock::duration d) {
    return std::chrono::duration_cast<hf::milliseconds>(d).count();
}

class Five {
public:
    /// `keep`: each node keeps every write.
    explicit Five(bool keep = false, RedisOptions options = {}, int n = 5) {
        options.append_only = keep;
        for (int i = 0; i < n; ++i)
            nodes_.push_back(std::make_unique<RedisServer>(RedisServer::start(options)));
    }
    std::size_t size() const { return nodes_.size(); }
    RedisServer& operator[](std::size_t i) { return *nodes_[i]; }
    std::string where(std::size_t i) const {
        return "127.0.0.1:" + std::to_string(nodes_[i]->port());
    }
    std::string hosts() const {
        std::string out;
        for (std::size_t i = 0; i < size(); ++i)
            out += (i > 0 ? "," : "") + where(i);
        return out;
    }
    /// durable=yes unless the query says otherwise: these nodes have only just started.
    std::string url(const std::string& query = "durable=yes") const {
        return "redlock://" + hosts() + (query.empty() ? "" : "?" + query);
    }
    /// At how many nodes the key is.
    std::size_t holding(const std::string& name) {
        std::size_t n = 0;
        for (auto& node : nodes_)
            n += node->alive() && node->process().state() == lab::ProcessState::running &&
                         node->cli({"EXISTS", name}).integer == 1
                     ? 1
                     : 0;
        return n;
    }

private:
    std::vector<std::unique_ptr<RedisServer>> nodes_;
};

/// A proxy before each node.
class Proxied {
public:
    explicit Proxied(Five& nodes) {
        for (std::size_t i = 0; i < nodes.size(); ++i)
            proxies_.emplace_back(nodes[i].port());
    }
    lab::Proxy& operator[](std::size_t i) { return proxies_[i]; }
    auto begin() { return proxies_.begin(); }
    auto end() { return proxies_.end(); }
    std::string url(const std::string& query) const {
        std::string out;
        for (const lab::Proxy& proxy : proxies_)
            out += (out.empty() ? "redlock://127.0.0.1:" : ",127.0.0.1:") +
                   std::to_string(proxy.port());
        return out + "?" + query;
    }

private:
    std::vector<lab::Proxy> proxies_;
};

/// The same on either path.
inline hf::Lease acquire(hf::Lock& lock, bool async) {
    if (!async) return hold(lock, 20s);
    std::promise<std::pair<hf::error_code, hf::Lease>> got;
    lock.async_acquire({.wait = 20s}, [&](hf::error_code ec, hf::Lease l) {
        got.set_value({ec, std::move(l)});
    });
    auto [ec, lease] = got.get_future().get();
    INFO(ec.message());
    REQUIRE_FALSE(ec);
    return std::move(lease);
}

/// The error of one attempt, and its words.
inline hf::error_code refusal(hf::Lock& lock, std::string* words = nullptr,
                              hf::milliseconds wait = 0ms) {
    hf::Diagnostics said;
    hf::AcquireOptions options;
    options.wait = wait;
    options.diagnostics = &said;
    const auto lease = lock.acquire(options);
    if (words != nullptr) *words = said.text();
    return lease ? hf::error_code() : lease.error();
}

}  // namespace redlock_tests
