// The suite's ground on a server with SQL.
#pragma once
#include <string>
#include <utility>

#include "holdfast/lab/proxy.hpp"
#include "restartable.hpp"

namespace suite {

template <class Server>
class TableGround final : public Restartable<Server> {
public:
    explicit TableGround(std::string name)
        : Restartable<Server>(std::move(name)), proxy_(server_.port()) {}
    Proxies* proxy() override { return &proxies_; }
    bool plant_stranger(const std::string& name) override {
        hf::Diagnostics ignored;
        (void)hf::Client::open(this->url()).value().probe(&ignored);  // makes the table
        return changed("INSERT INTO holdfast_lease (name, meta) VALUES ('" + name +
                       "', 'semaphore')");
    }
    bool stranger_is_whole(const std::string& name) override {
        return !server_
                    .sql("SELECT 1 FROM holdfast_lease WHERE name = '" + name +
                         "' AND meta = 'semaphore' AND owner IS NULL")
                    .empty();
    }
    bool erase_behind(const std::string& name) override {
        return changed("DELETE FROM holdfast_lease WHERE name = '" + name + "'");
    }

private:
    Server& machine() override { return server_; }
    std::string base_url() const override { return server_.url(); }
    std::string proxied_base_url() const override {
        return server_.url_with_password(proxy_.port());
    }
    /// One row was.
    bool changed(const std::string& statement) const {
        return server_.sql(statement + " RETURNING 1").size() == 1;
    }

    Server server_ = Server::start();
    lab::Proxy proxy_;
    Proxies proxies_{{&proxy_}};
};

}  // namespace suite
