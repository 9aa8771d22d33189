// A backend's configuration, typed; the option table, and what such a configuration promises.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::postgresql {

struct Options {
    explicit Options(const spi::Settings&);

    std::string host;
    std::uint16_t port;
    std::string socket;    ///< a folder; then host and port only name the socket in it
    std::string database;  ///< empty: that of the user's name
    std::string user;      ///< empty: as libpq finds it
    spi::Secret password;
    std::string prefix;  ///< namespace, put before every name
    std::string schema;  ///< of the table; empty: as search_path says
    std::vector<std::pair<std::string, std::string>> libpq;  ///< sslmode and the like
    std::string display;
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
Capabilities promises();

}  // namespace holdfast::postgresql
