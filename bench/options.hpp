// What the command line asks for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::bench {

enum class Effort : std::uint8_t { quick, normal, full };
enum class Placement : std::uint8_t {
    one,    ///< client and servers on one core: ratios that hold on any machine
    spread  ///< wherever the kernel puts them
};

struct Options {
    Effort effort = Effort::normal;
    Placement placement = Placement::one;
    std::vector<std::string> scenarios;  ///< ids; empty: all
    std::uint64_t seed = 0;              ///< 0: drawn
    std::string json, html;              ///< files to write; empty: none
    bool verbose = false;                ///< print all figures, not one screen
    std::string histories;               ///< a folder to keep them in; empty: temporary
    std::string config, backend, url;  ///< the user's own deployment; all empty: the lab's servers
    std::string command_line;          ///< as it was given, without secrets, for the report

    bool own_servers() const { return !config.empty() || !backend.empty() || !url.empty(); }
    /// Picks by effort.
    template <class T>
    T pick(T quick, T normal, T full) const {
        return effort == Effort::quick ? quick : effort == Effort::normal ? normal : full;
    }
};

}  // namespace holdfast::bench
