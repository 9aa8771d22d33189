// The loop of `inspect --watch`: one look at a time in the background, signals in between.
#include "inspect_watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <vector>

#include "as_json.hpp"
#include "background.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "inspection_text.hpp"
#include "json_text.hpp"
#include "message.hpp"
#include "renewals.hpp"
#include "status_fd.hpp"
#include "terminal.hpp"

namespace holdfast::cli {
namespace {

bool can_redraw() {
    const char* term = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && !(term && std::string_view(term) == "dumb");
}

/// Lines of a terminal that are written over with each drawing.
class Screen {
public:
    void draw(const std::string& text) {
        winsize size{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
            size.ws_col = 80, size.ws_row = 24;
        std::vector<std::string> lines;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            wrap(text.substr(at, end - at), std::max<std::size_t>(size.ws_col, 20), lines);
            at = end + 1;
        }
        const auto most = static_cast<std::size_t>(std::max(size.ws_row - 1, 2));
        if (lines.size() > most) {
            lines.resize(most);
            lines.back() = "  ...";
        }
        std::string out = lines_ > 0 ? fmt::format("\r\033[{}A\033[J", lines_) : "";
        for (const std::string& line : lines)
            out += line + '\n';
        lines_ = lines.size();
        std::cout << out << std::flush;
    }
    /// What was drawn stays; the next drawing begins below it.
    void leave() { lines_ = 0; }

private:
    /// What the terminal would wrap could not be counted. A column needs a byte at least.
    static void wrap(std::string line, std::size_t columns, std::vector<std::string>& out) {
        while (line.size() >= columns) {
            std::size_t n = line.rfind(' ', columns - 1);
            if (n == line.npos || n < columns / 2) n = columns - 1;
            while ((static_cast<unsigned char>(line[n]) & 0xC0U) == 0x80)
                --n;
            out.push_back(line.substr(0, n));
            line = "    " + line.substr(line[n] == ' ' ? n + 1 : n);
        }
        out.push_back(std::move(line));
    }
    std::size_t lines_ = 0;
};

struct Look {
    boot_clock::time_point asked, answered;
    result<Inspection> seen = error_code{};
    Diagnostics diagnostics;
};

/// All but times: what has to change for another block.
std::string standing(const Look& look) {
    if (!look.seen) return look.seen.error().message();
    boost::json::object o = as_json(*look.seen, {});
    o["closed_for_ms"] = look.seen->closed_for.has_value();
    for (const char* const list : {"holders", "waiters", "nodes"}) {
        if (!o.contains(list)) continue;
        for (auto& one : o[list].as_array())
            for (const char* const time : {"ttl_left_ms", "held_for_ms"})
                one.as_object().erase(time);
    }
    return json_text(o);
}

class View {
public:
    View(std::string name, std::string url, milliseconds interval, bool json)
        : name_(std::move(name)),
          url_(std::move(url)),
          interval_(interval),
          json_(json),
          live_(!json && can_redraw()) {}

    void show(const Look& look) {
        if (look.seen) renewals_.look(look.seen->holders, look.asked, look.answered);
        std::string now = standing(look);
        const bool changed = now != shown_;
        shown_ = std::move(now);
        if (live_)
            screen_.draw(text(look) + fmt::format("{}, every {}; ^C ends this\n", wall_time(),
                                                  spoken(interval_)));
        else if (changed && json_)
            std::cout << line(look) << std::endl;
        else if (changed)
            std::cout << wall_time() << ' ' << text(look) << std::flush;
    }
    void leave() { screen_.leave(); }
    bool live() const { return live_; }

private:
    std::string text(const Look& look) const {
        if (look.seen) return as_text(*look.seen, &renewals_);
        return fmt::format("{}: {}; looking again every {}\n", in_quotes(name_),
                           shown(look.seen.error().message()), spoken(interval_));
    }
    std::string line(const Look& look) const {
        boost::json::object o;
        if (look.seen)
            o = as_json(*look.seen, url_, renewals_);
        else
            o = {{"schema", "holdfast.inspect/1"},
                 {"name", clean_utf8(name_)},
                 {"url", clean_utf8(url_)},
                 {"error", look.seen.error().message()}};
        o["time"] = wall_time();
        return json_text(o);
    }

    const std::string name_, url_;
    const milliseconds interval_;
    const bool json_, live_;
    Renewals renewals_;
    Screen screen_;
    std::string shown_;
};

}  // namespace

int watch(Client& client, const std::string& name, milliseconds interval, bool json,
          Signals& signals) {
    View view(name, client.url(), interval, json);
    Background<Look> look;
    boot_clock::time_point next = boot_clock::now();
    while (true) {
        if (!look.busy() && boot_clock::now() >= next) {
            next = boot_clock::now() + interval;
            look.start([&client, &name](const std::stop_token&) {
                Look l;
                l.asked = boot_clock::now();
                l.seen = client.inspect(name, &l.diagnostics);
                l.answered = boot_clock::now();
                return l;
            });
        }
        const auto wait = std::chrono::ceil<milliseconds>(next - boot_clock::now());
        const int patience = look.busy() ? -1 : static_cast<int>(std::max(wait.count(), 0L));
        // Standard output has an event of its own when its reader has gone.
        std::array<pollfd, 3> fds{
            {{look.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}}};
        ::poll(fds.data(), fds.size(), patience);
        while (const auto number = signals.next()) {
            if (*number == SIGTSTP || *number == SIGWINCH) view.leave();
            if (*number == SIGTSTP) Terminal::stop_self();
            if (!ends_things(*number)) continue;
            if (view.live()) std::cout << std::endl;
            client.close();  // a look that is under way ends
            return *number == SIGINT ? exit_ok : 128 + *number;
        }
        const bool reader_gone = (fds[2].revents & (POLLERR | POLLHUP)) != 0;
        if (reader_gone || !std::cout) {
            client.close();
            if (reader_gone) std::cout.clear();  // which is its right
            return exit_ok;
        }
        if (fds[0].revents == 0) continue;
        const Look l = look.take();
        if (!l.seen && exit_code(l.seen.error()) != exit_unavailable) {
            complain(l.seen.error(), l.diagnostics);
            return exit_code(l.seen.error());
        }
        view.show(l);
    }
}

}  // namespace holdfast::cli
