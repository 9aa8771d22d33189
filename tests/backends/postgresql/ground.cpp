// The suite's ground on a PostgreSQL server.
#include "ground.hpp"

namespace suite {
namespace {

class Postgresql final : public Harness {
public:
    Postgresql() : Harness("postgresql"), proxy_(server_.port()) {}
    Proxies* proxy() override { return &proxies_; }
    bool restartable() const override { return true; }
    bool kill_server() override {
        server_.kill();
        return !server_.alive();
    }
    bool restart_server(lab::Data data) override {
        server_.restart(data);
        return true;
    }
    bool pause_server() override {
        server_.pause();
        return true;
    }
    bool resume_server() override {
        server_.resume();
        return true;
    }
    bool durable() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        hf::Diagnostics ignored;
        (void)hf::Client::open(url()).value().probe(&ignored);  // makes the table
        server_.sql("INSERT INTO holdfast_lease(name, meta) VALUES ('" + name + "', 'semaphore')");
        return true;
    }
    bool stranger_is_whole(const std::string& name) override {
        return !server_
                    .sql("SELECT 1 FROM holdfast_lease WHERE name = '" + name +
                         "' AND meta = 'semaphore' AND owner IS NULL")
                    .empty();
    }
    bool erase_behind(const std::string& name) override {
        return server_.sql("DELETE FROM holdfast_lease WHERE name = '" + name + "' RETURNING 1")
                   .size() == 1;
    }

protected:
    std::string base_url() const override { return server_.url(); }
    std::string proxied_base_url() const override {
        return server_.url_with_password(proxy_.port());
    }

private:
    lab::PostgresServer server_ = lab::PostgresServer::start();
    lab::Proxy proxy_;
    Proxies proxies_{{&proxy_}};
};

const AddGround postgresql{"postgresql", [] { return std::make_unique<Postgresql>(); },
                           all_but({C::fifo, C::watch}), break_traced};

}  // namespace
}  // namespace suite
