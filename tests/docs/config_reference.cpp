// docs/configuration.md against the option tables, and the samples in the pages against the parser.
//   config_reference --write FILE | --compare FILE | --samples PAGE...
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "holdfast/spi/config.hpp"
#include "holdfast/spi/reference.hpp"

namespace {

using holdfast::Diagnostics;
using holdfast::spi::Registry;

std::string read(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

int compare(const std::string& path) {
    const std::string want = holdfast::spi::configuration_reference(Registry::linked());
    const std::string have = read(path);
    if (have == want) return 0;
    std::istringstream a(have), b(want);
    std::string x, y;
    for (int line = 1;; ++line) {
        const bool more_a = static_cast<bool>(std::getline(a, x));
        const bool more_b = static_cast<bool>(std::getline(b, y));
        if (!more_a) x.clear();
        if (!more_b) y.clear();
        if (x != y || (!more_a && !more_b)) {
            std::cout << path << ':' << line << " differs from the option tables\n  page:   " << x
                      << "\n  tables: " << y
                      << "\nwrite it anew: cmake --build build/dev --target docs_configuration\n";
            return 1;
        }
    }
}

/// Complains about every ```toml block and every `scheme:...` of the page that is refused.
int check_page(const std::string& page, int& samples) {
    const std::string text = read(page);
    int wrong = 0;
    static const std::regex block("```toml\n([^`]*)```");
    for (std::sregex_iterator m(text.begin(), text.end(), block), end; m != end; ++m) {
        Diagnostics words;
        ++samples;
        if (!holdfast::read_config_text((*m)[1].str(), page, Registry::linked(), words)) {
            std::cout << words.text() << '\n';
            ++wrong;
        }
    }
    std::string schemes;
    for (const auto& backend : Registry::linked().all())
        for (const std::string& scheme : backend->schemes)
            schemes += (schemes.empty() ? "" : "|") + scheme;
    // "..." and <...> and $ stand for the reader's own values.
    const std::regex url("(?:[ \"(=])((?:" + schemes + ")://[^\\s\"'`)<>|,;]+)");
    for (std::sregex_iterator m(text.begin(), text.end(), url), end; m != end; ++m) {
        const std::string found = (*m)[1].str();
        if (found.find("...") != std::string::npos || found.find('$') != std::string::npos)
            continue;
        Diagnostics words;
        ++samples;
        if (!holdfast::parse_url(found, Registry::linked(), words)) {
            std::cout << page << ": " << found << '\n' << words.text() << '\n';
            ++wrong;
        }
    }
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 64;
    const std::string_view what = argv[1];
    if (what == "--compare") return compare(argv[2]);
    if (what == "--write") {
        std::ofstream(argv[2]) << holdfast::spi::configuration_reference(Registry::linked());
        return 0;
    }
    if (what != "--samples") return 64;
    int wrong = 0, samples = 0;
    for (int i = 2; i < argc; ++i)
        wrong += check_page(argv[i], samples);
    std::cout << samples << " samples, " << wrong << " refused\n";
    return wrong == 0 && samples > 0 ? 0 : 1;
}
