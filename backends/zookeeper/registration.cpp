// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/register_backend.hpp"

namespace holdfast::zookeeper {
namespace {

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "zookeeper";
    d.schemes = {"zookeeper"};
    d.summary = "a ZooKeeper ensemble: consensus, fencing tokens, a fair queue";
    d.example = "zookeeper://zk1,zk2,zk3/locks";
    d.options = option_table();
    d.hosts = spi::Descriptor::Hosts::many;
    d.default_port = 2181;
    d.takes_credentials = true;
    d.path = spi::Descriptor::Path::optional;
    d.path_meaning = "the parent node of the locks, created if missing; by default /holdfast";
    d.check = check;
    d.identity = identity;
    d.capabilities = promises;
    d.make = spi::make_backend<ZooKeeperBackend>;
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::zookeeper

HOLDFAST_REGISTER_BACKEND(zookeeper, holdfast::zookeeper::describe())
