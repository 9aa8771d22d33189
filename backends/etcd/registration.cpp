// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast::etcd {
namespace {

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "etcd";
    d.schemes = {"etcd", "etcds"};
    d.summary = "an etcd cluster: consensus, fencing tokens, a fair queue";
    d.example = "etcd://etcd1,etcd2,etcd3/locks";
    d.hosts = spi::Descriptor::Hosts::many;
    d.default_port = 2379;
    d.path = spi::Descriptor::Path::optional;
    d.path_meaning = "what the keys of the locks begin with; by default /holdfast";
    d.takes_credentials = true;
    d.options = option_table();
    d.check = check;
    d.identity = identity;
    d.capabilities = promises;
    d.make = [](const spi::Settings& s, spi::Context c) -> std::unique_ptr<spi::Backend> {
        return std::make_unique<EtcdBackend>(s, c);
    };
    d.checks = all_checks();
    return d;
}

const spi::Registration registration{describe()};

}  // namespace
}  // namespace holdfast::etcd

extern "C" [[gnu::visibility("default")]] void holdfast_backend_etcd();
extern "C" void holdfast_backend_etcd() {}
