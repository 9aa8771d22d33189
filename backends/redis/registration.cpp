// Registers the backend; its build forces this object file into every program that links it.
#include "backend.hpp"
#include "holdfast/spi/register_backend.hpp"

namespace holdfast::redis {
namespace {

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
    d.make = [](const spi::Settings& s, spi::Context c) -> std::unique_ptr<spi::Backend> {
        if (!Options(s).queue) return std::make_unique<RedisBackend>(s, c);
        return std::make_unique<QueueBackend>(s, c);
    };
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::redis

HOLDFAST_REGISTER_BACKEND(redis, holdfast::redis::describe())
