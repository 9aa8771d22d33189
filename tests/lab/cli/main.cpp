// The lab as a command: servers for a person or a script to try things against, which leave nothing
// behind however the command ends.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/error.hpp"
#include "nearest.hpp"
#include "server.hpp"
#include "session.hpp"
#include "words.hpp"

namespace {

using namespace holdfast::lab;
using namespace holdfast::lab::cli;

constexpr int exit_usage = 64;
constexpr int exit_unavailable = 69;
constexpr std::uint64_t most_servers = 100;

constexpr const char* help_begin =
    R"(Usage: holdfast-lab SERVER [OPTION]...

Starts real servers in temporary directories on free loopback ports and prints one URL
per line. It runs until ^C, SIGTERM, `quit` or the end of standard input, and then
removes everything.

Servers:
)";

constexpr const char* help_end =
    R"(
Options:
  --count N             number of independent servers (default 1)
  --proxy               put a fault proxy before each; the URLs lead through it
  --password[=WORD]     require a password from clients, random by default
  --tls                 TLS for clients, with a new certificate (needs openssl)
  --appendonly          sync every write to disk (redis: in an append-only file)
  --config LINE         another line for the server's configuration; repeatable
  --help                print this help

Meanwhile it reads commands from standard input, and answers on standard error:

)";

struct Arguments {
    const ServerKind* kind = nullptr;
    std::uint64_t count = 1;
    bool proxy = false;
    bool help = false;
    ServerOptions server;
};

struct UsageError {
    std::string text;
};

std::string random_password() {
    unsigned char bytes[12] = {};
    const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && ::read(fd, bytes, sizeof bytes) == sizeof bytes;
    if (fd >= 0) {
        ::close(fd);
    }
    if (!ok) {
        throw LabError("no random bytes for a password");
    }
    std::string text;
    for (const auto byte : bytes) {
        text += fmt::format("{:02x}", byte);
    }
    return text;
}

const ServerKind& kind_named(const std::string& name) {
    std::vector<std::string_view> names;
    for (const auto& kind : server_kinds()) {
        if (kind.name == name) {
            return kind;
        }
        names.push_back(kind.name);
    }
    throw UsageError{
        fmt::format("no server named {}; did you mean {}?", name, nearest(name, names))};
}

void read_option(const std::string& option, const std::vector<std::string>& words, std::size_t& at,
                 Arguments& result) {
    const auto equals = option.find('=');
    const auto name = option.substr(0, equals);
    std::optional<std::string> given;
    if (equals != std::string::npos) {
        given = option.substr(equals + 1);
    }
    const auto value = [&] {
        if (given) {
            return *given;
        }
        if (at + 1 >= words.size()) {
            throw UsageError{name + " needs a value"};
        }
        return words[++at];
    };
    const auto no_value = [&] {
        if (given) {
            throw UsageError{name + " takes no value"};
        }
    };
    if (name == "--count") {
        const auto number = detail::number_of(value());
        if (!number || *number < 1 || *number > most_servers) {
            throw UsageError{fmt::format("--count takes a number from 1 to {}", most_servers)};
        }
        result.count = *number;
    } else if (name == "--config") {
        result.server.config.push_back(value());
    } else if (name == "--password") {
        result.server.password = given ? *given : random_password();
        if (result.server.password.empty() ||
            result.server.password.find_first_of(" \t\r\n\"'\\#@:/?%") != std::string::npos) {
            throw UsageError{"--password takes a word without blanks, quotes or URL marks"};
        }
    } else if (name == "--proxy") {
        no_value();
        result.proxy = true;
    } else if (name == "--tls") {
        no_value();
        result.server.tls = true;
    } else if (name == "--appendonly") {
        no_value();
        result.server.append_only = true;
    } else {
        throw UsageError{fmt::format("no option {}; did you mean {}?", name,
                                     nearest(name, {"--count", "--proxy", "--password", "--tls",
                                                    "--appendonly", "--config", "--help"}))};
    }
}

Arguments read_arguments(const std::vector<std::string>& words) {
    Arguments result;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const auto& word = words[at];
        if (word == "--help" || word == "-h") {
            result.help = true;
            return result;
        }
        if (word.starts_with("-")) {
            read_option(word, words, at, result);
        } else if (result.kind == nullptr) {
            result.kind = &kind_named(word);
        } else {
            throw UsageError{"one server kind at a time; unexpected word " + word};
        }
    }
    if (result.kind == nullptr) {
        throw UsageError{"which server?"};
    }
    return result;
}

// /dev/null as input means that nobody can type, not that somebody has finished.
bool is_dev_null(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

void say(const std::string& text) {
    if (!text.empty()) {
        fmt::print(stderr, "{}{}", text, text.back() == '\n' ? "" : "\n");
    }
}

void execute_and_say(const std::string& line, std::vector<Place>& places, bool& quit) {
    try {
        say(execute(line, places, quit));
    } catch (const LabError& error) {
        say(std::string("holdfast-lab: ") + error.what());
    }
}

// Serves standard input until a signal arrives or the person has finished.
void serve(std::vector<Place>& places, int signals) {
    std::string input;
    pollfd entries[2] = {{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (is_dev_null(STDIN_FILENO)) {
        entries[1].fd = -1;
    }
    bool quit = false;
    while (!quit) {
        if (::poll(entries, 2, -1) < 0 && errno != EINTR) {
            return;
        }
        if (entries[0].revents != 0) {
            return;
        }
        if (entries[1].revents == 0) {
            continue;
        }
        char buffer[4096];
        const auto count = ::read(STDIN_FILENO, buffer, sizeof buffer);
        if (count < 0) {
            // In the background of a terminal there is nothing to read: go on until a signal.
            if (errno != EINTR) {
                entries[1].fd = -1;
            }
            continue;
        }
        quit = count == 0;
        input.append(buffer, static_cast<std::size_t>(count));
        if (quit && !input.empty()) {
            input += '\n';
        }
        for (auto end = input.find('\n'); end != std::string::npos; end = input.find('\n')) {
            const auto line = input.substr(0, end);
            input.erase(0, end + 1);
            execute_and_say(line, places, quit);
            if (quit && count > 0) {
                return;
            }
        }
    }
}

int run(const Arguments& arguments, int signals) {
    std::vector<Place> places;
    for (std::uint64_t number = 0; number < arguments.count; ++number) {
        Place place;
        place.server = arguments.kind->start(arguments.server);
        if (arguments.proxy) {
            place.proxy.emplace(place.server->port());
        }
        places.push_back(std::move(place));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        for (const auto& note : places[i].server->notes()) {
            say(fmt::format("{}: {}", i + 1, note));
        }
        if (places[i].proxy) {
            say(fmt::format("{}: behind the proxy: {}", i + 1,
                            places[i].server->url(places[i].server->port())));
        }
        fmt::print("{}\n", places[i].url());
    }
    std::fflush(stdout);
    serve(places, signals);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    // Blocked before any thread exists, so that none of them takes a signal.
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        ::sigaddset(&set, number);
    }
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGTTIN, SIG_IGN);
    const int signals = ::signalfd(-1, &set, SFD_CLOEXEC);
    try {
        const auto arguments = read_arguments({argv + 1, argv + argc});
        if (arguments.help) {
            fmt::print("{}", help_begin);
            for (const auto& kind : server_kinds()) {
                fmt::print("  {:<20}  {}\n", kind.name, kind.what);
            }
            fmt::print("{}{}", help_end, session_help);
            return 0;
        }
        return run(arguments, signals);
    } catch (const UsageError& error) {
        fmt::print(stderr, "holdfast-lab: {}\nTry holdfast-lab --help.\n", error.text);
        return exit_usage;
    } catch (const std::exception& error) {
        fmt::print(stderr, "holdfast-lab: {}\n", error.what());
        return exit_unavailable;
    }
}
