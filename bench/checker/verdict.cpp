#include "checker/verdict.hpp"

#include <algorithm>
#include <cstdio>

namespace holdfast::bench::history {

namespace {

struct Words {
    std::string_view name, meaning;
    Gravity gravity;
};

constexpr std::array<Words, troubles> words{{
    {"overlap", "two beliefs at the same time", Gravity::violation},
    {"within_validity", "grants within the validity of a holder never heard of again",
     Gravity::violation},
    {"token_order", "tokens that did not grow with the grants", Gravity::violation},
    {"token_repeated", "tokens given twice", Gravity::violation},
    {"token_missing", "grants without the token that is declared", Gravity::violation},
    {"stale_fenced", "stale writes accepted by a fenced store", Gravity::violation},
    {"rightful_refused", "rightful writes refused by a fenced store", Gravity::violation},
    {"inversion", "grants out of the order of requests", Gravity::violation},
    {"previous_holder", "wrong words about the previous holder", Gravity::violation},
    {"left_alone", "names left alone for longer than the limit", Gravity::violation},
    {"stale_unfenced", "stale writes accepted by an unfenced store", Gravity::observation},
    {"held_after_error", "acquisitions that returned an error and held", Gravity::observation},
    {"release_forgotten", "releases that a killed server had not synced yet", Gravity::observation},
    {"torn", "damaged files and records", Gravity::damage},
    {"contradictory", "records that cannot all be true", Gravity::damage},
    {"other_clock", "files whose times do not compare", Gravity::damage},
}};

const Words& words_of(Trouble t) noexcept {
    return words[static_cast<std::size_t>(t)];
}

std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte >= 0x7f) {
            // Names may be any bytes: as Latin-1, so that the object is JSON in any case.
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "\\u%04x", byte);
            out += code.data();
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string seconds(std::int64_t ns) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6f", static_cast<double>(ns) / 1e9);
    return text.data();
}

/// The figures that are numbers, in the order of the report.
std::vector<std::pair<const char*, std::uint64_t>> numbers(const Figures& f) {
    return {{"files", f.files},
            {"bytes", f.bytes},
            {"records", f.records},
            {"names", f.names},
            {"acquisitions", f.acquisitions},
            {"granted", f.granted},
            {"failed", f.failed},
            {"unfinished", f.unfinished},
            {"silent", f.silent},
            {"left_out", f.left_out},
            {"writes", f.writes},
            {"writes_unjudged", f.writes_unjudged},
            {"tokens_judged", f.tokens_judged},
            {"fenced_judged", f.fenced_judged},
            {"unfenced_judged", f.unfenced_judged},
            {"previous_judged", f.previous_judged},
            {"inversions_judged", f.inversions_judged}};
}

const char* word(Gravity g) {
    switch (g) {
        case Gravity::violation:
            return "violation";
        case Gravity::observation:
            return "observation";
        case Gravity::damage:
            break;
    }
    return "damage";
}

}  // namespace

std::string_view to_string(Trouble t) noexcept {
    return words_of(t).name;
}

std::string_view meaning(Trouble t) noexcept {
    return words_of(t).meaning;
}

Gravity gravity(Trouble t) noexcept {
    return words_of(t).gravity;
}

std::uint64_t Verdict::count(Gravity g) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < troubles; ++i)
        if (words[i].gravity == g) sum += counts_[i];
    return sum;
}

bool Verdict::clean() const {
    return std::all_of(counts_.begin(), counts_.end(), [](std::uint64_t n) { return n == 0; });
}

int Verdict::exit_code() const {
    if (!sound()) return 2;
    return count(Gravity::damage) != 0 ? 1 : 0;
}

void Verdict::add(Trouble t, std::string line) {
    add(t);
    first_.push_back({t, std::move(line)});
}

std::string Verdict::text() const {
    std::string out = std::to_string(figures.acquisitions) + " acquisitions of " +
                      std::to_string(figures.names) + " names by " + std::to_string(figures.files) +
                      " processes: " + std::to_string(figures.granted) + " granted, " +
                      std::to_string(figures.failed) + " failed, " +
                      std::to_string(figures.unfinished) + " unfinished";
    if (figures.writes != 0) out += "; " + std::to_string(figures.writes) + " writes";
    out += '\n';
    if (figures.longest_alone_ns != 0)
        out += "longest time in which somebody waited and nobody held: " +
               seconds(figures.longest_alone_ns) + " s (" + figures.longest_alone + ")\n";
    if (figures.left_out != 0)
        out += std::to_string(figures.left_out) + " acquisitions are not judged\n";
    for (std::size_t i = 0; i < troubles; ++i) {
        if (counts_[i] == 0) continue;
        out += std::string(word(words[i].gravity)) + ": " + std::to_string(counts_[i]) + " x " +
               std::string(words[i].name) + " (" + std::string(words[i].meaning) + ")\n";
        for (const Finding& f : first_)
            if (static_cast<std::size_t>(f.trouble) == i) out += "    " + f.line + '\n';
    }
    if (!sound()) return out + "a guarantee was broken\n";
    return out + (count(Gravity::damage) == 0 ? "no guarantee was broken\n"
                                              : "no guarantee was broken, as far as can be read\n");
}

std::string Verdict::json() const {
    std::string out = "{\"sound\":";
    out += sound() ? "true" : "false";
    out += ",\"exit_code\":" + std::to_string(exit_code()) + ",\"figures\":{";
    for (const auto& [name, value] : numbers(figures))
        out += json_text(name) + ':' + std::to_string(value) + ',';
    out += "\"longest_alone_s\":" + seconds(figures.longest_alone_ns) +
           ",\"longest_alone\":" + json_text(figures.longest_alone) + "},\"counts\":{";
    for (std::size_t i = 0; i < troubles; ++i)
        out += (i == 0 ? "" : ",") + json_text(words[i].name) + ':' + std::to_string(counts_[i]);
    out += "},\"findings\":[";
    const char* comma = "";
    for (const Finding& f : first_) {
        out += comma;
        out += "{\"trouble\":" + json_text(to_string(f.trouble)) +
               ",\"gravity\":" + json_text(word(gravity(f.trouble))) +
               ",\"line\":" + json_text(f.line) + '}';
        comma = ",";
    }
    return out + "]}\n";
}

}  // namespace holdfast::bench::history
