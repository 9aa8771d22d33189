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

/// Optional arguments whose empty text is as good as any other.
constexpr std::array<std::string_view, 4> may_be_empty{"--label", "--value", "NAME", "PREFIX"};

std::string missing_command(const CLI::App& app) {
    std::string all;
    for (const CLI::App* s : app.get_subcommands(nullptr))
        all += (all.empty() ? "" : ", ") + s->get_name();
    return fmt::format("missing command; choose one of: {}", all);
}

/// The sentence for an error of the parser, whose own words are for programmers.
std::string sentence(const CLI::App& app, const CLI::ParseError& error) {
    const std::string text = error.what();
    const auto before = [&text](std::string_view mark) { return text.substr(0, text.find(mark)); };
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        if (text == CLI::RequiredError("A subcommand").what())
            return missing_command(*resolved(app));
        return "missing " + before(" is required");
    }
    if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
        const std::string first = before(" excludes ");
        return fmt::format("{} and {} exclude each other", first,
                           text.substr(std::min(text.size(), first.size() + 10)));
    }
    const std::string name = before(": ");
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
        return fmt::format(
            "{} {}", name,
            text.ends_with(" missing") ? "needs a value" : "is given more than once");
    if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr && name.size() < text.size())
        return name + text.substr(name.size() + 1);
    return shown(text);
}

std::string unexpected(const CLI::App& app, const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with('-')) {
        const std::string sub = resolved(app)->get_name();
        const bool run = takes_command(sub);
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
    if (word.empty()) return usage(missing_command(app));
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
    return usage(sentence(app, error), name);
}

std::optional<int> refuse_empty(const CLI::App& app, const Split& split) {
    for (const CLI::App* a = &app; a != nullptr;
         a = a->get_subcommands().empty() ? nullptr : a->get_subcommands().front()) {
        for (const CLI::Option* o : a->get_options()) {
            const std::string name = o->get_name();
            const auto& given = o->results();
            if (std::find(given.begin(), given.end(), "") == given.end() ||
                std::find(may_be_empty.begin(), may_be_empty.end(), name) != may_be_empty.end())
                continue;
            return usage(fmt::format("{} is given and empty: is a variable not set?", name),
                         split.subcommand);
        }
    }
    return {};
}

}  // namespace holdfast::cli
