// What makes postgresql:// open in every program that links Holdfast::postgresql.
#include "backend.hpp"
#include "holdfast/spi/register_backend.hpp"

namespace holdfast::postgresql {
namespace {

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "postgresql";
    d.schemes = {"postgresql", "postgres"};
    d.summary = "a table in a PostgreSQL database";
    d.example = "postgresql://127.0.0.1:5432/app";
    d.options = option_table();
    d.hosts = spi::Descriptor::Hosts::many;
    d.host_option = "socket";
    d.default_port = 5432;
    d.takes_credentials = true;
    d.path_meaning = "the name of the database; by default the user's name";
    d.schema = Statements({}).create();
    d.check = check;
    d.identity = identity;
    d.capabilities = [](const spi::Settings&) { return promises(); };
    d.make = spi::make_backend<Backend>;
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::postgresql

HOLDFAST_REGISTER_BACKEND(postgresql, holdfast::postgresql::describe())
