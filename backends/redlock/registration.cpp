// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast::redlock {
namespace {

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "redlock";
    d.schemes = {"redlock", "redlocks"};
    d.summary = "a majority of independent Redis servers: no single point of failure";
    d.example = "redlock://h1:6379,h2:6379,h3:6379";
    d.options = option_table();
    d.hosts = spi::Descriptor::Hosts::many;
    d.default_port = 6379;
    d.takes_credentials = true;
    d.path = spi::Descriptor::Path::optional;
    d.path_meaning = "the number of the database at every node";
    d.check = check;
    d.identity = identity;
    d.capabilities = promises;
    d.make = [](const spi::Settings& s, spi::Context c) -> std::unique_ptr<spi::Backend> {
        return std::make_unique<RedlockBackend>(s, c);
    };
    d.checks = all_checks();
    return d;
}

const spi::Registration registration{describe()};

}  // namespace
}  // namespace holdfast::redlock

extern "C" [[gnu::visibility("default")]] void holdfast_backend_redlock();
extern "C" void holdfast_backend_redlock() {}
