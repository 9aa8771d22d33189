// What makes mysql:// open in every program that links Holdfast::mysql.
#include "backend.hpp"
#include "holdfast/spi/register_backend.hpp"

namespace holdfast::mysql {
namespace {

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "mysql";
    d.schemes = {"mysql", "mariadb"};
    d.summary = "a table in a MariaDB or MySQL database";
    d.example = "mysql://127.0.0.1:3306/app";
    d.options = option_table();
    d.hosts = spi::Descriptor::Hosts::one;
    d.host_option = "socket";
    d.default_port = 3306;
    d.takes_credentials = true;
    d.path = spi::Descriptor::Path::required;
    d.path_meaning = "the name of the database";
    d.schema = create_table();
    d.check = check;
    d.identity = identity;
    d.capabilities = [](const spi::Settings&) { return promises(); };
    d.make = spi::make_backend<Backend>;
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::mysql

HOLDFAST_REGISTER_BACKEND(mysql, holdfast::mysql::describe())
