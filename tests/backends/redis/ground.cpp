// The suite's grounds on one Redis server: notified, polling, and the plain mode.
#include "ground.hpp"

namespace suite {
namespace {

class Redis final : public Harness {
public:
    Redis(std::string name, std::string query)
        : Harness(std::move(name)), query_(std::move(query)), proxy_(server_.port()) {}
    Proxies* proxy() override { return &proxies_; }
    RedisNodes* foreign_client() override { return &nodes_; }
    bool restartable() const override { return true; }
    std::string other_mode() const override {
        return query_ == "?mode=plain" ? "mode=fenced" : "mode=plain";
    }
    bool kill_server() override {
        nodes_.kill();
        return !nodes_.alive();
    }
    bool restart_server(lab::Data data) override {
        nodes_.restart(data);
        return true;
    }
    bool pause_server() override {
        nodes_.pause();
        return true;
    }
    bool resume_server() override {
        nodes_.resume();
        return true;
    }
    bool durable() const override { return true; }
    bool close_takes_back() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        return server_.cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool stranger_is_whole(const std::string& name) override { return nodes_.is_stranger(name); }
    bool erase_behind(const std::string& name) override {
        return server_.cli({"DEL", name}).integer == 1;
    }

protected:
    std::string base_url() const override { return server_.url() + query_; }
    std::string proxied_base_url() const override {
        return server_.url_with_password(proxy_.port()) + query_;
    }

private:
    static lab::RedisOptions options() {
        lab::RedisOptions o;
        o.append_only = true;
        // Servers are killed here, machines are not: the page cache outlives them, and a disk that
        // is busy syncing for others would look like a server that hangs.
        o.append_fsync = "no";
        return o;
    }
    std::string query_;
    lab::RedisServer server_ = lab::RedisServer::start(options());
    lab::Proxy proxy_;
    RedisNodes nodes_{{&server_}};
    Proxies proxies_{{&proxy_}};
};

const AddGround redis{"redis", [] { return std::make_unique<Redis>("redis", ""); },
                      all_but({C::watch}), break_reason_kept};
const AddGround redis_poll{"redis-poll",
                           [] { return std::make_unique<Redis>("redis-poll", "?wait=poll"); },
                           all_but({C::fifo, C::notified, C::watch}), break_reason_kept};
const AddGround redis_plain{
    "redis-plain", [] { return std::make_unique<Redis>("redis-plain", "?mode=plain"); },
    mutexes_but({C::fencing, C::fifo, C::notified, C::previous_holder}), break_forgotten};

}  // namespace
}  // namespace suite
