#include "demo_picture.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "message.hpp"

namespace holdfast::cli {
namespace {

constexpr milliseconds per_column{100};
constexpr std::size_t most_columns = 60;

bool speaks_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (value == nullptr || *value == '\0') continue;
        const std::string_view text = value;
        return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
    }
    return false;
}

struct Glyph {
    const char *rich, *plain, *color;
};

Glyph glyph(Timeline::State s) {
    switch (s) {
        case Timeline::State::waits:
            return {"\u00b7", ".", "\x1b[2m"};
        case Timeline::State::holds:
            return {"\u2588", "#", "\x1b[32m"};
        case Timeline::State::paused:
            return {"\u2591", "=", "\x1b[33m"};
        case Timeline::State::none:
            break;
    }
    return {" ", " ", ""};
}

Glyph glyph(std::string_view mark) {
    if (mark == "accepted") return {"\u2713", "v", "\x1b[1;32m"};
    if (mark == "refused") return {"\u2717", "x", "\x1b[1;31m"};
    return {"\u2620", "!", "\x1b[1;31m"};
}

}  // namespace

std::string bar(long part, long whole) {
    constexpr long width = 40;
    const long full = std::clamp(part * width / std::max(whole, 1L), 0L, width);
    const bool rich = speaks_utf8();
    std::string text;
    for (long i = 0; i < width; ++i)
        text += i < full ? (rich ? "\u2588" : "#") : (rich ? "\u2591" : "-");
    return text;
}

void draw_line(const std::string& text, bool last) {
    const bool live = ::isatty(STDOUT_FILENO) == 1;
    if (live) std::cout << '\r' << text << std::flush;
    if (last) std::cout << (live ? "" : text) << std::endl;
}

Timeline::Timeline(bool shown)
    : shown_(shown),
      live_(shown && ::isatty(STDOUT_FILENO) == 1),
      colors_(colored(STDOUT_FILENO)),
      utf8_(speaks_utf8()) {}

Timeline::Row& Timeline::row(std::size_t worker) {
    if (rows_.size() < worker) rows_.resize(worker);
    return rows_[worker - 1];
}

void Timeline::set(std::size_t worker, State s) {
    row(worker).changes.push_back({boot_clock::now(), s});
    tick();
}

void Timeline::mark(std::size_t worker, std::string_view what) {
    row(worker).marks.push_back({boot_clock::now(), std::string(what)});
    tick();
}

void Timeline::note(std::size_t worker, std::string text) {
    row(worker).note = std::move(text);
}

std::size_t Timeline::column(boot_clock::time_point t) const {
    return std::min(static_cast<std::size_t>((t - began_) / per_column), most_columns - 1);
}

std::string Timeline::text(const Row& r, std::size_t columns) const {
    std::vector<Glyph> cells(columns, glyph(State::none));
    for (std::size_t i = 0; i < r.changes.size(); ++i) {
        const std::size_t from = column(r.changes[i].at);
        const std::size_t to = i + 1 < r.changes.size() ? column(r.changes[i + 1].at) : columns;
        for (std::size_t c = from; c < std::min(to, columns); ++c)
            cells[c] = glyph(r.changes[i].state);
    }
    for (const Mark& m : r.marks)
        if (const std::size_t c = column(m.at); c < columns) cells[c] = glyph(m.what);
    std::string out;
    for (const Glyph& g : cells) {
        const bool paint = colors_ && *g.color != '\0';
        out += fmt::format("{}{}{}", paint ? g.color : "", utf8_ ? g.rich : g.plain,
                           paint ? "\x1b[0m" : "");
    }
    return out;
}

void Timeline::draw() {
    const auto now = boot_clock::now();
    const std::size_t columns = column(now) + 1;
    std::string out;
    if (live_ && lines_ > 0) out = fmt::format("\x1b[{}A", lines_);
    lines_ = rows_.size();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const std::string gap(most_columns - columns, ' ');
        out += fmt::format("  worker {}  {}{} {}{}\n", i + 1, text(rows_[i], columns), gap,
                           rows_[i].note, live_ ? "\x1b[K" : "");
    }
    std::cout << out << std::flush;
    drawn_ = now;
}

void Timeline::tick() {
    if (live_ && boot_clock::now() >= drawn_ + milliseconds(50)) draw();
}

void Timeline::finish() {
    if (shown_) draw();
}

}  // namespace holdfast::cli
