// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/register_backend.hpp"

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
    d.make = spi::make_backend<EtcdBackend>;
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::etcd

HOLDFAST_REGISTER_BACKEND(etcd, holdfast::etcd::describe())
