// The suite's grounds on five nodes of Redlock, with tokens and without.
#include "ground.hpp"

#include <algorithm>
#include <map>

#include "holdfast/spi/owner.hpp"
#include "restartable.hpp"

namespace suite {
namespace {

/// Five nodes that keep every write, which the URL declares.
class Redlock final : public Restartable<RedisNodes> {
public:
    Redlock(std::string name, std::string query) : Restartable(std::move(name)), query_(query) {
        std::vector<lab::RedisServer*> nodes;
        std::vector<lab::Proxy*> proxies;
        for (int i = 0; i < 5; ++i) {
            lab::RedisOptions o;
            o.append_only = true;
            o.append_fsync = "no";
            servers_.push_back(std::make_unique<lab::RedisServer>(lab::RedisServer::start(o)));
            proxies_.push_back(std::make_unique<lab::Proxy>(servers_.back()->port()));
            nodes.push_back(servers_.back().get());
            proxies.push_back(proxies_.back().get());
        }
        nodes_ = std::make_unique<RedisNodes>(nodes);
        all_proxies_ = std::make_unique<Proxies>(proxies);
    }
    Proxies* proxy() override { return all_proxies_.get(); }
    RedisNodes* foreign_client() override { return nodes_.get(); }
    std::string other_mode() const override {
        return query_.empty() ? "fencing=off" : "fencing=on";
    }
    /// Of a majority of the nodes, each of which keeps "TICKET MODE OWNER CHANNEL".
    std::optional<std::size_t> unseen_waiters(const std::string& name,
                                              const std::string& note) override {
        if (!query_.empty()) return std::nullopt;
        std::map<std::string, std::size_t> nodes_with;
        for (const auto& server : servers_)
            for (const auto& mark :
                 server->cli({"ZRANGE", "{" + name + "}:hf:m", "0", "-1"}).elements)
                ++nodes_with[mark.text];
        return static_cast<std::size_t>(std::ranges::count_if(nodes_with, [&](const auto& mark) {
            const auto owner = mark.first.find(' ', mark.first.find(' ') + 1) + 1;
            const auto text = std::string_view(mark.first).substr(owner);
            const auto found = holdfast::spi::parse_owner(text.substr(0, text.find(' ')));
            return mark.second > servers_.size() / 2 && (note.empty() || found.note == note);
        }));
    }
    std::string waits_for_late_answers() const override {
        return "request_timeout=8s&node_timeout=3s";
    }
    bool plant_stranger(const std::string& name) override {
        return nodes_->cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool stranger_is_whole(const std::string& name) override { return nodes_->is_stranger(name); }
    bool erase_behind(const std::string& name) override {
        long long gone = 0;
        for (const auto& server : servers_)
            gone += server->cli({"DEL", name}).integer;
        return gone >= 3;  // of five: a majority had it
    }

protected:
    std::string base_url() const override {
        return url_of([](const auto& server, const auto&) { return server->port(); });
    }
    std::string proxied_base_url() const override {
        return url_of([](const auto&, const auto& proxy) { return proxy->port(); });
    }

private:
    RedisNodes& machine() override { return *nodes_; }
    template <class Port>
    std::string url_of(Port port) const {
        std::string url = "redlock://";
        for (std::size_t i = 0; i < servers_.size(); ++i)
            url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") +
                   std::to_string(port(servers_[i], proxies_[i]));
        // Seen through the proxies, the nodes have other addresses.
        return url + "?durable=yes&node_set=suite" + query_;
    }
    std::string query_;
    std::vector<std::unique_ptr<lab::RedisServer>> servers_;
    std::vector<std::unique_ptr<lab::Proxy>> proxies_;
    std::unique_ptr<RedisNodes> nodes_;
    std::unique_ptr<Proxies> all_proxies_;
};

const AddGround redlock{
    "redlock", [] { return std::make_unique<Redlock>("redlock", ""); },
    all_but({C::fifo, C::previous_holder, C::semaphore, C::release_request, C::watch}),
    break_reason_kept};
const AddGround redlock_plain{
    "redlock-plain", [] { return std::make_unique<Redlock>("redlock-plain", "&fencing=off"); },
    mutexes_but({C::fencing, C::fifo, C::notified, C::previous_holder}), break_reason_kept};

}  // namespace
}  // namespace suite
