// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "cluster/backend.hpp"
#include "holdfast/spi/register_backend.hpp"

namespace holdfast::redis {
namespace {

std::unique_ptr<spi::Backend> make(const spi::Settings& s, spi::Context c) {
    return make_server(s, c, tls_context(s, c.events));
}

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "redis";
    d.schemes = {"redis", "rediss"};
    d.summary = "one Redis server: fencing tokens, a fair queue, notified waiters";
    d.example = "redis://127.0.0.1:6379";
    d.options = option_table();
    d.hosts = spi::Descriptor::Hosts::one;
    d.default_port = 6379;
    d.takes_credentials = true;
    d.path = spi::Descriptor::Path::optional;
    d.path_meaning = "the number of the database";
    d.check = check;
    d.identity = identity;
    d.capabilities = promises;
    d.make = make;
    d.checks = all_checks();
    return d;
}

/// The same servers, found by Sentinels.
spi::Descriptor describe_sentinels() {
    spi::Descriptor d = describe();
    d.name = "redis-sentinel";
    d.schemes = {"redis+sentinel", "rediss+sentinel"};
    d.summary = "Redis that fails over: as redis, with the primary that Sentinels name";
    d.example = "redis+sentinel://127.0.0.1,127.0.0.2,127.0.0.3/mymaster";
    d.options = sentinel_option_table();
    d.checks = all_sentinel_checks();
    d.hosts = spi::Descriptor::Hosts::many;
    d.default_port = 26379;
    d.path = spi::Descriptor::Path::required;
    d.path_meaning =
        "the name of the primary at the Sentinels, and behind another slash the number of the "
        "database";
    return d;
}

/// Servers that share the names.
spi::Descriptor describe_cluster() {
    spi::Descriptor d = describe();
    d.name = "redis-cluster";
    d.schemes = {"redis+cluster", "rediss+cluster"};
    d.summary = "Redis Cluster: as redis, at the server that has the slot of the name";
    d.example = "redis+cluster://127.0.0.1,127.0.0.2,127.0.0.3";
    d.options = cluster_option_table();
    d.checks = all_cluster_checks();
    d.hosts = spi::Descriptor::Hosts::many;
    d.path = spi::Descriptor::Path::none;
    d.path_meaning.clear();
    d.make = spi::make_backend<ClusterBackend>;
    return d;
}

}  // namespace
}  // namespace holdfast::redis

HOLDFAST_REGISTER_BACKEND(redis, holdfast::redis::describe())

namespace {
const holdfast::spi::Registration by_sentinels(holdfast::redis::describe_sentinels());
const holdfast::spi::Registration of_a_cluster(holdfast::redis::describe_cluster());
}  // namespace
