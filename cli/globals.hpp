// What every subcommand gets: the global options, and how to open what they name.
#pragma once
#include <CLI/App.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/spi/config.hpp"

namespace holdfast::cli {

struct Globals {
    std::string url, backend, config_file;
    bool local = false;
    bool json = false;
    /// What follows the first "--" of `run` or `elect`: not for the option parser.
    std::vector<std::string> command;
    /// Set by the subcommand that was chosen.
    std::function<int()> action;

    /// What Client::open takes: a URL, a name, or nothing. Makes the folder of --local. Throws
    /// WrongEnvironment.
    std::string target() const;
    /// "--url", ... as a person would say where the backend came from.
    std::string target_source() const;
};

/// The chosen place of the locks cannot be told from the environment: a wrong configuration.
struct WrongEnvironment : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The chosen backend, checked, without connecting; complains and returns nothing on error, with
/// the exit code in `exit`.
std::optional<ResolvedBackend> choose_backend(const Globals&, int& exit,
                                              std::string_view consequence = {});

/// Opens the client; complains and returns nothing on error. Warns of what the client warns of;
/// `events` gets the rest.
std::optional<Client> open_client(const Globals&, int& exit, std::string_view consequence = {},
                                  EventSink events = {});

/// $XDG_STATE_HOME/holdfast/local.db, its folder made with mode 0700. Throws WrongEnvironment.
std::string local_url();

/// The backends of this build that have tables.
std::vector<std::string> backends_with_tables();

/// mkdir -p, every new folder with mode 0700. Throws WrongEnvironment.
void make_private(const std::filesystem::path& folder);

// One per subcommand, each in its own file.
void add_run(CLI::App&, Globals&);
void add_elect(CLI::App&, Globals&);
void add_check(CLI::App&, Globals&);
void add_leader(CLI::App&, Globals&);
void add_ask(CLI::App&, Globals&);
void add_inspect(CLI::App&, Globals&);
void add_list(CLI::App&, Globals&);
void add_break(CLI::App&, Globals&);
void add_backends(CLI::App&, Globals&);
void add_doctor(CLI::App&, Globals&);
void add_config(CLI::App&, Globals&);
void add_schema(CLI::App&, Globals&);
void add_demo(CLI::App&, Globals&);

/// A process of `holdfast demo`; nothing when argv asks for none.
std::optional<int> demo_worker(int argc, char** argv);

}  // namespace holdfast::cli
