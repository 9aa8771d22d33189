// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/register_backend.hpp"

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
    d.make = spi::make_backend<RedlockBackend>;
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::redlock

HOLDFAST_REGISTER_BACKEND(redlock, holdfast::redlock::describe())
