// Five real nodes, and clients of them.
#pragma once
#include <future>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
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

/// Instrumented machines are slow: caps are multiplied by this, claims are not.
inline constexpr bool instrumented =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif
inline constexpr int patience = instrumented ? 3 : 1;

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

inline hf::Client open(const std::string& url, hf::ClientOptions options = {}) {
    hf::Diagnostics words;
    options.diagnostics = &words;
    auto client = hf::Client::open(url, options);
    INFO(words.text());
    REQUIRE(client.has_value());
    return *client;
}

inline std::unique_ptr<hf::Lock> lock_of(const hf::Client& client, const std::string& name,
                                         const hf::LockOptions& options = {}) {
    auto lock = client.make_lock(name, options);
    REQUIRE(lock.has_value());
    return std::move(*lock);
}

inline hf::Lease hold(hf::Lock& lock, hf::milliseconds wait = 10s) {
    hf::Diagnostics words;
    hf::AcquireOptions options;
    options.wait = wait;
    options.diagnostics = &words;
    auto lease = lock.acquire(options);
    INFO(words.text());
    INFO((lease ? std::string("held") : lease.error().message()));
    REQUIRE(lease.has_value());
    return std::move(*lease);
}

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
