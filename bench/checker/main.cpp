// holdfast-check-history: judges what processes recorded of their locks.
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "checker/check.hpp"

namespace {

namespace history = holdfast::bench::history;

constexpr const char* usage =
    "holdfast-check-history [OPTION...] FILE...: judges what processes recorded of their locks\n"
    "\n"
    "  --json                one JSON object instead of text\n"
    "  --lines N             how many of each kind of trouble are shown (default 5)\n"
    "  --alone MS            trouble when somebody waits and nobody holds for longer\n"
    "  --in-line-after MS    assume that a request is in the queue so long after it was made\n"
    "  --unsynced-release MS the servers sync a release only so long after its answer\n"
    "  --others              others who record nothing use the names, too\n"
    "  --dump                print the records of each file and judge nothing\n"
    "\n"
    "Exit codes: 0 no guarantee was broken; 1 none as far as can be read, but files are damaged,\n"
    "contradict themselves or do not compare; 2 a guarantee was broken; 64 usage.\n";

int wrong(std::string_view what) {
    std::fprintf(stderr, "holdfast-check-history: %.*s (--help shows the options)\n",
                 static_cast<int>(what.size()), what.data());
    return 64;
}

bool number(std::string_view text, std::int64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    // A thousand years of milliseconds: what is more could overflow as nanoseconds.
    return error == std::errc{} && end == text.data() + text.size() && out >= 0 &&
           out <= 1'000'000'000'000;
}

int dump(const std::vector<std::filesystem::path>& files) {
    for (const auto& file : files) {
        std::printf("== %s\n", file.c_str());
        std::fputs(history::dump(file).c_str(), stdout);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    history::Limits limits;
    history::Verdict verdict;
    bool json = false, only_dump = false, options = true;
    std::vector<std::filesystem::path> files;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        std::int64_t value = 0;
        if (!options || !word.starts_with("-")) {
            files.emplace_back(word);
        } else if (word == "--") {
            options = false;
        } else if (word == "--json") {
            json = true;
        } else if (word == "--dump") {
            only_dump = true;
        } else if (word == "--others") {
            limits.everyone_recorded = false;
        } else if (word == "--help" || word == "-h") {
            std::fputs(usage, stdout);
            return 0;
        } else if (word == "--lines" || word == "--alone" || word == "--in-line-after" ||
                   word == "--unsynced-release") {
            if (i + 1 == argc || !number(argv[++i], value))
                return wrong(std::string(word) + " needs a number");
            if (word == "--lines")
                verdict.keep(static_cast<std::uint64_t>(value));
            else
                (word == "--alone"           ? limits.alone
                 : word == "--in-line-after" ? limits.in_line_after
                                             : limits.unsynced_release) = value * 1'000'000;
        } else {
            return wrong("no such option: " + std::string(word));
        }
    }
    if (files.empty()) return wrong("no file is named");
    if (only_dump) return dump(files);
    const history::History all = history::read(files, verdict);
    history::check(all, limits, verdict);
    std::fputs(json ? verdict.json().c_str() : verdict.text().c_str(), stdout);
    return verdict.exit_code();
} catch (const std::exception& error) {
    std::fprintf(stderr, "holdfast-check-history: %s\n", error.what());
    return 70;
}
