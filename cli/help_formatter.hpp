// Where the parser's own --help would not show what comes after "--", or show too much.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "args.hpp"

namespace holdfast::cli {

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App* app, std::string name) const override {
        const std::string& sub = app->get_name();
        if (takes_command(sub))
            return "Usage: holdfast " + sub + " [OPTIONS] NAME" + (sub == "run" ? "..." : "") +
                   " -- COMMAND [ARGUMENT...]\n";
        return CLI::Formatter::make_usage(app, name);
    }
    /// Without the list of options that exclude this one.
    std::string make_option_opts(const CLI::Option* o) const override {
        const std::string all = CLI::Formatter::make_option_opts(o);
        return all.substr(0, all.find(" Excludes:"));
    }
};

}  // namespace holdfast::cli
