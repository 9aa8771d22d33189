// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/registry.hpp"

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
    d.make = [](const spi::Settings& s, spi::Context c) -> std::unique_ptr<spi::Backend> {
        return std::make_unique<ZooKeeperBackend>(s, c);
    };
    d.checks = all_checks();
    return d;
}

const spi::Registration registration{describe()};

}  // namespace
}  // namespace holdfast::zookeeper

extern "C" [[gnu::visibility("default")]] void holdfast_backend_zookeeper();
extern "C" void holdfast_backend_zookeeper() {}
