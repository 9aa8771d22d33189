// A ground on one server or several that agree among themselves.
#pragma once
#include <string>
#include <utility>

#include "harness.hpp"

namespace suite {

/// As both ZooKeeper's nodes and etcd's keys have it.
inline std::string escaped(const std::string& name) {
    std::string out;
    for (const char c : name)
        out += c == '/' ? std::string("%2F") : std::string(1, c);
    return out;
}

/// One server or several; what is done to the server is done to each. One proxy, before one of
/// them: a client has one connection, or asks one member.
template <class Servers>
class Ensemble : public Harness {
public:
    Ensemble(std::string name, Servers servers, std::string query)
        : Harness(std::move(name)),
          servers_(std::move(servers)),
          query_(std::move(query)),
          proxy_(servers_.port(0)) {}
    Proxies* proxy() override { return &proxies_; }
    bool pause_server() override {
        for (std::size_t i = 0; i < servers_.size(); ++i)
            servers_.pause(i);
        return true;
    }
    bool resume_server() override {
        for (std::size_t i = 0; i < servers_.size(); ++i)
            servers_.resume(i);
        return true;
    }
    void wait_ready() override { servers_.wait_ready(); }
    bool durable() const override { return true; }

protected:
    std::string base_url() const override { return servers_.url() + query_; }
    std::string proxied_base_url() const override {
        const auto all = servers_.url();
        return all.substr(0, all.find("://") + 3) + "127.0.0.1:" + std::to_string(proxy_.port()) +
               query_;
    }
    Servers servers_;

private:
    std::string query_;
    lab::Proxy proxy_;
    Proxies proxies_{{&proxy_}};
};

}  // namespace suite
