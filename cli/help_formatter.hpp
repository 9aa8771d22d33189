// The usage line of --help, where the parser's own would not show what comes after "--".
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

namespace holdfast::cli {

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App* app, std::string name) const override {
        if (app->get_name() == "run")
            return "Usage: holdfast run [OPTIONS] NAME -- COMMAND [ARGUMENT...]\n";
        return CLI::Formatter::make_usage(app, name);
    }
};

}  // namespace holdfast::cli
