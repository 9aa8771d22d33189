#include "bench.hpp"

#include "variants/documents.hpp"

namespace holdfast::bench {

Client Bench::open(const Deployment& deployment, asio::any_io_executor executor) {
    Diagnostics words;
    ClientOptions how;
    how.executor = std::move(executor);
    how.config_file = deployment.config_file;
    how.diagnostics = &words;
    how.registry = registry_for(deployment.open);
    auto client = Client::open(deployment.open, how);
    if (!client)
        throw SelfCheck(deployment.label() + ": " + client.error().message() + ": " + words.text());
    return *client;
}

std::unique_ptr<Lock> Bench::lock(const Client& client, const Deployment& deployment,
                                  const std::string& name, const LockOptions& how) {
    auto lock = client.make_lock(deployment.prefix + name, how);
    if (!lock) check(lock.error(), "lock " + deployment.prefix + name);
    return std::move(*lock);
}

Row row_of(const std::string& scenario, const Deployment& d, double x) {
    Row row;
    row.scenario = scenario;
    row.backend = d.backend;
    row.variant = d.variant;
    row.x = x;
    return row;
}

void check(error_code ec, const std::string& what) {
    if (ec) throw SelfCheck(what + ": " + ec.message());
}

}  // namespace holdfast::bench
