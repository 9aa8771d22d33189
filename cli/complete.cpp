// `holdfast complete`: finds where in the parser's tree the cursor stands, and what fits there.
#include "complete.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string_view>

#include "args.hpp"
#include "exit_code.hpp"
#include "message.hpp"
#include "option_values.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t most_names = 200;

/// What is before the cursor, as the parser will read it.
struct Cursor {
    CLI::App* app = nullptr;               ///< the innermost subcommand
    CLI::Option* value = nullptr;          ///< the option whose value the last word is
    std::size_t arguments = 0;             ///< that are no options, before the last word
    std::optional<std::size_t> separator;  ///< number of the "--" after which a command stands
};

CLI::Option* option_named(CLI::App& root, CLI::App& app, const std::string& name) {
    for (CLI::App* a : {&app, &root}) {
        for (CLI::Option* o :
             a->get_options([](const CLI::Option* one) { return !one->get_positional(); }))
            if (o->check_name(name)) return o;
    }
    return nullptr;
}

/// The options that choose the backend take effect: names of locks are asked of it.
void take(CLI::Option& option, const std::string& value) {
    const std::string name = option.get_name();
    if (name != "--url" && name != "--backend" && name != "--config" && name != "--local") return;
    option.add_result(value);
    option.run_callback();
}

Cursor cursor_in(CLI::App& root, const std::vector<std::string>& words) {
    Cursor p;
    p.app = &root;
    const std::size_t last = words.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
        const std::string& word = words[i];
        if (i < last && word == "--" && takes_command(p.app->get_name())) {
            p.separator = i;
            return p;
        }
        if (word.starts_with('-')) {
            const std::size_t equals = word.find('=');
            CLI::Option* option = option_named(root, *p.app, word.substr(0, equals));
            if (option == nullptr) continue;
            const bool own = word.starts_with("--") && equals != std::string::npos;
            if (option->get_items_expected_max() == 0) {
                if (i < last) take(*option, "true");
            } else if (own && i == last) {
                p.value = option;
            } else if (own) {
                take(*option, word.substr(equals + 1));
            } else if (i + 1 == last) {
                p.value = option;
                return p;
            } else if (i < last) {
                take(*option, words[++i]);
            }
        } else if (i < last) {
            const auto subs =
                p.app->get_subcommands([&word](CLI::App* one) { return one->get_name() == word; });
            if (p.arguments == 0 && !subs.empty())
                p.app = subs.front();
            else
                ++p.arguments;
        }
    }
    return p;
}

void offer(std::string_view word, std::string_view description = {}) {
    // What is shown escaped is not the name itself.
    if (word.empty() || shown(word) != word) return;
    std::cout << word;
    if (!description.empty()) std::cout << '\t' << description.substr(0, description.find('\n'));
    std::cout << '\n';
}

void offer_backends(const Globals& g) {
    const std::string path = g.config_file.empty() ? find_config() : g.config_file;
    Diagnostics mistakes;
    const auto file = read_config(path, spi::Registry::linked(), mistakes);
    if (!file) return;
    for (const ResolvedBackend& one : file->backends)
        offer(one.settings.name, one.backend->name);
}

void offer_locks(const Globals& g) {
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return;
    Diagnostics mistakes;
    const auto names = client->list("", most_names, &mistakes);
    if (!names) return;
    for (const std::string& name : *names)
        offer(name);
}

void offer_signals() {
    for (int n = 1; n < NSIG; ++n) {
        const char* name = ::sigabbrev_np(n);
        if (name != nullptr) offer(std::string("SIG") + name);
    }
}

/// What fits as the value of this option, or as this argument.
void offer_values(CLI::Option& option, const Globals& g) {
    const bool argument = option.get_positional();
    const std::string kind = argument ? option.get_name() : option.get_type_name();
    if (kind == "FILE" || kind == "PATH") {
        std::cout << "files\n";
        return;
    }
    std::cout << "words\n";
    for (const std::string& word : words_of(option))
        offer(word);
    if (kind == "SIGNAL")
        offer_signals();
    else if (option.get_name() == "--backend")
        offer_backends(g);
    else if (kind == "BACKEND")
        for (const std::string& one : backends_with_tables())
            offer(one);
    else if (argument && (kind == "NAME" || kind == "PREFIX"))
        offer_locks(g);
}

void offer_options(CLI::App& root, CLI::App& app) {
    std::cout << "words\n";
    std::vector<CLI::App*> levels{&app};
    if (&app != &root) levels.push_back(&root);
    for (CLI::App* a : levels) {
        for (const CLI::Option* o : a->get_options()) {
            // --help once: each level has its own.
            if (o->get_positional() || (a == &root && &app != &root && o->check_name("--help")))
                continue;
            for (const std::string& l : o->get_lnames())
                offer("--" + l, o->get_description());
            for (const std::string& s : o->get_snames())
                offer("-" + s, o->get_description());
        }
    }
    if (takes_command(app.get_name())) offer("--", "The command follows");
}

void offer_arguments(CLI::App& app, std::size_t before, const Globals& g) {
    const auto subcommands = app.get_subcommands(nullptr);
    if (before == 0 && !subcommands.empty()) {
        std::cout << "words\n";
        for (const CLI::App* one : subcommands)
            offer(one->get_name(), one->get_description());
        return;
    }
    for (CLI::Option* o : app.get_options()) {
        if (!o->get_positional()) continue;
        const auto takes = static_cast<std::size_t>(o->get_items_expected_max());
        if (before < takes) {
            offer_values(*o, g);
            return;
        }
        before -= takes;
    }
}

}  // namespace

std::optional<int> complete(int argc, char** argv, CLI::App& app, Globals& globals) {
    if (argc != 2 || std::strcmp(argv[1], "complete") != 0) return {};
    std::vector<std::string> words;
    for (std::string word; std::getline(std::cin, word, '\0');)
        words.push_back(word);
    if (words.empty())
        return usage("complete reads the words of a command line from standard input", "");
    const Cursor cursor = cursor_in(app, words);
    if (cursor.separator)
        std::cout << "command " << *cursor.separator + 1 << '\n';
    else if (cursor.value != nullptr)
        offer_values(*cursor.value, globals);
    else if (words.back().starts_with('-'))
        offer_options(app, *cursor.app);
    else
        offer_arguments(*cursor.app, cursor.arguments, globals);
    return exit_ok;
}

}  // namespace holdfast::cli
