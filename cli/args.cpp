// The first "--", and passwords in arguments.
#include "args.hpp"

#include <cstring>
#include <string_view>

#include "holdfast/spi/registry.hpp"

namespace holdfast::cli {
namespace {

bool takes_value(std::string_view word) {
    return word == "--url" || word == "--backend" || word == "--config" || word == "--color";
}

/// The part of a URL that holds a password, as [begin, end); empty when there is none.
struct Span {
    std::size_t begin = 0, end = 0;
};

Span user_password(std::string_view url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) return {};
    // Where there is no host, it is all path.
    const auto* backend = spi::Registry::linked().find_scheme(url.substr(0, scheme));
    if (backend != nullptr && backend->hosts == spi::Descriptor::Hosts::none) return {};
    const std::size_t from = scheme + 3;
    // The last '@', since a password may hold anything when it was not escaped.
    const std::size_t at = url.rfind('@');
    if (at == std::string_view::npos || at < from) return {};
    const std::size_t colon = url.find(':', from);
    if (colon == std::string_view::npos || colon + 1 >= at) return {};
    return {colon + 1, at};
}

Span option_password(std::string_view url) {
    for (std::size_t at = url.find('?'); at != std::string_view::npos;
         at = url.find_first_of("&;", at + 1)) {
        constexpr std::string_view key = "password=";
        if (url.substr(at + 1, key.size()) != key) continue;
        const std::size_t begin = at + 1 + key.size();
        const std::size_t end = std::min(url.find_first_of("&;#", begin), url.size());
        if (end > begin) return {begin, end};
    }
    return {};
}

bool blank(char* word) {
    bool found = false;
    for (const Span s : {user_password(word), option_password(word)}) {
        if (s.end == s.begin) continue;
        std::memset(word + s.begin, '*', s.end - s.begin);
        found = true;
    }
    return found;
}

}  // namespace

Split split_arguments(int argc, char** argv) {
    Split split;
    int i = 1;
    for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
        std::string word = argv[i];
        // As two words: after "--option=" the parser would take the next word for the value.
        const bool empty = word.starts_with("--") && word.find('=') == word.size() - 1;
        if (empty) word.pop_back();
        split.ours.push_back(std::move(word));
        if (empty) split.ours.emplace_back();
    }
    for (std::size_t n = 0; n < split.ours.size() && split.subcommand.empty(); ++n) {
        if (takes_value(split.ours[n]))
            ++n;
        else if (!split.ours[n].starts_with('-'))
            split.subcommand = split.ours[n];
    }
    split.separator = i < argc;
    if (!split.separator) return split;
    if (!takes_command(split.subcommand)) {
        for (; i < argc; ++i)
            split.ours.emplace_back(argv[i]);
    } else {
        for (++i; i < argc; ++i)
            split.command.emplace_back(argv[i]);
    }
    return split;
}

bool has_password(std::string_view url) {
    return user_password(url).end != 0 || option_password(url).end != 0;
}

bool blank_passwords(int argc, char** argv) {
    bool found = false, of_doctor = false;
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
        const std::string_view word = argv[i];
        of_doctor = of_doctor || word == "doctor";
        const bool url = word.starts_with("--url=") ||
                         (i > 1 && (std::string_view(argv[i - 1]) == "--url" || of_doctor));
        found = (blank(argv[i]) && url) || found;
    }
    return found;
}

std::vector<std::string> passwords_in(const std::vector<std::string>& words) {
    std::vector<std::string> all;
    for (const std::string& word : words) {
        for (const Span s : {user_password(word), option_password(word)}) {
            // With what is before it: a password may be a word that messages use.
            if (s.end > s.begin) all.push_back(word.substr(s.begin - 1, s.end - s.begin + 1));
        }
    }
    return all;
}

}  // namespace holdfast::cli
