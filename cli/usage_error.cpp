// From the parser's errors to sentences.
#include "usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "exit_code.hpp"
#include "holdfast/spi/reference.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

struct Hint {
    std::string_view words;
    std::string_view text;
};

/// Options of flock(1) that holdfast does not support.
constexpr std::array<Hint, 7> hints{{
    {"-o --close", "is not supported: the command inherits no file descriptor of the lock"},
    {"-u --unlock", "is not supported: use  holdfast break NAME"},
    {"-F --no-fork", "is not supported: holdfast stays to renew the lock and to guard the command"},
    {"-c --command", "is not supported: use  holdfast run NAME -- sh -c 'COMMAND'"},
    {"--slots", "is not supported: use --permits K --of N"},
    {"--verbose-flock --fcntl", "is not supported: the lock is not a file"},
    {"--start --length", "is not supported: the lock is not a file"},
}};

bool lists(std::string_view words, std::string_view word) {
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find(' ', at), words.size());
        if (words.substr(at, end - at) == word) return true;
        at = end + 1;
    }
    return false;
}

const CLI::App* resolved(const CLI::App& app) {
    const auto subs = app.get_subcommands();
    return subs.empty() ? &app : resolved(*subs.front());
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* a : {resolved(app), &app}) {
        for (const CLI::Option* o : a->get_options()) {
            for (const std::string& l : o->get_lnames())
                names.push_back("--" + l);
        }
    }
    return names;
}

std::string unexpected(const CLI::App& app, const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with('-')) {
        const std::string sub = resolved(app)->get_name();
        const bool run = sub == "run" || sub == "elect";
        return fmt::format(
            "unexpected argument {}{}", in_quotes(word),
            run ? fmt::format("\nWrite the command after --:  holdfast {} NAME -- COMMAND", sub)
                : "");
    }
    for (const Hint& h : hints) {
        if (lists(h.words, name)) return fmt::format("{} {}", name, h.text);
    }
    const std::string near = spi::nearest(name, option_names(app));
    return fmt::format("unknown option {}{}", in_quotes(name),
                       near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

}  // namespace

int usage(std::string_view text, std::string_view subcommand) {
    complain(fmt::format("{}\nSee:  holdfast {}{}--help", text, subcommand,
                         subcommand.empty() ? "" : " "));
    return exit_usage;
}

std::optional<int> refuse_subcommand(const CLI::App& app, const Split& split) {
    std::vector<std::string> names;
    for (const CLI::App* s : app.get_subcommands(nullptr))
        names.push_back(s->get_name());
    const std::string& word = split.subcommand;
    if (std::find(names.begin(), names.end(), word) != names.end()) return {};
    for (const std::string& o : split.ours) {
        if (o == "--help" || o == "-h" || o == "--version") return {};
    }
    if (word.empty()) {
        std::string all;
        for (const std::string& n : names)
            all += (all.empty() ? "" : ", ") + n;
        return usage(fmt::format("missing command; choose one of: {}", all));
    }
    const std::string near = spi::nearest(word, names);
    const std::string typed = in_quotes(word);
    if (word.find("://") != std::string::npos)
        return usage(fmt::format("unknown command {}; write a URL after --url", typed));
    return usage(fmt::format("unknown command {}{}", typed,
                             near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

int usage_error(const CLI::App& app, const Split& split, const CLI::ParseError& error) {
    const std::string name = split.subcommand;
    const auto extras = app.remaining(true);
    if (!extras.empty()) {
        const auto option = std::find_if(extras.begin(), extras.end(),
                                         [](const std::string& w) { return w.starts_with('-'); });
        const std::string& word = option != extras.end() ? *option : extras.front();
        return usage(unexpected(app, word), name);
    }
    std::string text = error.what();
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return usage(shown(text), name);
}

}  // namespace holdfast::cli
