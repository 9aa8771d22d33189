// What a person types while the servers run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/proxy.hpp"
#include "server.hpp"

namespace holdfast::lab::cli {

/// One server and the proxy in front of it, if there is one.
struct Place {
    std::unique_ptr<Server> server;
    std::optional<Proxy> proxy;

    std::string url();
};

/// The lines that `help` prints.
extern const char* const session_help;

/// Executes one typed line on the places and returns what to print. A leading number chooses one
/// place, otherwise all are meant. Sets `quit` for the word quit. Errors: LabError, for the person
/// to read.
std::string execute(const std::string& line, std::vector<Place>& places, bool& quit);

}  // namespace holdfast::lab::cli
