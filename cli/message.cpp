// What the command says to people.
#include "message.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "outbox.hpp"

namespace holdfast::cli {
namespace {

std::mutex mutex;
bool line_open = false;
std::vector<std::string> secrets;  // set before there are threads
std::unique_ptr<Outbox> outbox;    // of standard error, once nothing may wait for it

void put(std::string_view text) {
    if (outbox) {
        outbox->add(std::string(text));
        return;
    }
    while (!text.empty()) {
        const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
        if (n <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
}

std::string without_secrets(std::string text) {
    for (const std::string& secret : secrets) {
        for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 4)
            text.replace(at + 1, secret.size() - 1, "***");
    }
    return text;
}

void say(std::string_view what, std::string_view color) {
    const std::string text = spi::escaped_text(without_secrets(std::string(what)));
    const std::lock_guard hold(mutex);
    std::string out;
    if (line_open) out = "\r\033[K";
    line_open = false;
    const bool paint = !color.empty() && colored(STDERR_FILENO);
    out += paint ? fmt::format("\033[{}mholdfast:\033[0m ", color) : "holdfast: ";
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (at > 0) out += "  ";
        out.append(text, at, end - at);
        out += '\n';
        at = end + 1;
    }
    put(out);
}

}  // namespace

Voice& voice() {
    static Voice v;
    return v;
}

bool colored(int fd) {
    if (voice().color == Color::always) return true;
    if (voice().color == Color::never) return false;
    const char* no = std::getenv("NO_COLOR");
    if (no && *no) return false;
    const char* term = std::getenv("TERM");
    return ::isatty(fd) == 1 && !(term && std::string_view(term) == "dumb");
}

std::string shown(std::string_view name) {
    return spi::escaped_name(name);
}

std::string in_quotes(std::string_view name) {
    return spi::quoted_name(without_secrets(std::string(name)));
}

std::string in_quotes(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) text += i + 1 < names.size() ? ", " : " and ";
        text += in_quotes(names[i]);
    }
    return text;
}

std::string in_shell(std::string_view name, std::string_view stand_in) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-";
    if (!name.empty() && name.find_first_not_of(plain) == std::string_view::npos)
        return std::string(name);
    if (spi::escaped_text(name) != name || name.find_first_of("'\n") != std::string_view::npos)
        return std::string(stand_in);
    return fmt::format("'{}'", name);
}

void never_say(const std::string& secret) {
    if (secret.empty()) return;
    secrets.push_back(secret);
    if (shown(secret) != secret) secrets.push_back(shown(secret));
}

void messages_never_wait() {
    const std::lock_guard hold(mutex);
    if (outbox) return;
    outbox = std::make_unique<Outbox>(STDERR_FILENO, [](std::size_t n) {
        return fmt::format("holdfast: dropped {} unread messages\n", n);
    });
}

void flush_messages() {
    const std::lock_guard hold(mutex);
    if (outbox) outbox->flush();
}

void finish_messages() {
    const std::lock_guard hold(mutex);
    if (outbox) outbox->drain(milliseconds(1000));
}

void complain(std::string_view text) {
    say(text, "1;31");
}
void warn(std::string_view text) {
    say(text, "1;33");
}
void note(std::string_view text) {
    if (!voice().quiet) say(text, "1");
}
void detail(std::string_view text) {
    if (voice().verbose) say(text, "2");
}

void progress(std::string_view text) {
    const std::lock_guard hold(mutex);
    if (text.empty()) {
        if (line_open) put("\r\033[K");
        line_open = false;
        return;
    }
    winsize size{};
    std::size_t width = 80;
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) width = size.ws_col;
    std::string line = "holdfast: " + spi::escaped_text(without_secrets(std::string(text)));
    if (line.size() > width - 1) {
        std::size_t cut = width - 4;
        while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80)
            --cut;
        line = line.substr(0, cut) + "...";
    }
    put("\r\033[K" + line);
    line_open = true;
}

void complain(error_code ec, const Diagnostics& diagnostics, std::string_view consequence) {
    std::string text = diagnostics.entries.empty() ? ec.message() : std::string();
    for (const Diagnostics::Entry& e : diagnostics.entries) {
        if (!text.empty()) complain(text);
        text = e.where.empty() ? e.what : e.where + ": " + e.what;
        if (!e.remedy.empty()) text += '\n' + e.remedy;
    }
    if (!consequence.empty()) {
        text += '\n';
        text += consequence;
    }
    complain(text);
}

}  // namespace holdfast::cli
