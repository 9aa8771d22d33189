// What the command says to people: on standard error, after "holdfast: ", with names made harmless.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/spi/safe_text.hpp"

namespace holdfast::cli {

enum class Color : unsigned char { automatic, always, never };

/// How much is said, and in which colours; set once from the command line.
struct Voice {
    bool quiet = false;
    bool verbose = false;
    Color color = Color::automatic;
};
Voice& voice();

/// True when `fd` should get colours: a terminal, no NO_COLOR, or --color always.
bool colored(int fd);

/// A name as a person may see it: control characters, invalid UTF-8 and direction marks escaped,
/// so that a name cannot write to the terminal. Without quotes.
std::string shown(std::string_view name);
/// The same with quotes around it.
std::string in_quotes(std::string_view name);
/// "a", "b" and "c".
std::string in_quotes(const std::vector<std::string>& names);
/// One word for a shell, for lines that a person may paste: quoted unless it is plain. What cannot
/// be written so is `stand_in`.
std::string in_shell(std::string_view name, std::string_view stand_in);
using spi::clean_utf8;

/// No message repeats this, however it came into it: its first character and "***" stand there.
void never_say(const std::string& secret);

/// "holdfast: TEXT"; further lines are indented by two. Whatever is in TEXT, a server's words among
/// it, cannot write to the terminal otherwise. Any thread; one write each.
void complain(std::string_view text);
void warn(std::string_view text);
/// Not said with --quiet.
void note(std::string_view text);
/// Only said with --verbose.
void detail(std::string_view text);

/// From now on no message waits for a reader of standard error, which may be a full pipe or a
/// stopped terminal: it is kept until flush_messages(). At most 64 KiB are.
void messages_never_wait();
void flush_messages();
/// Gives a slow reader a second for the rest.
void finish_messages();

/// Rewrites one line of a terminal in place; empty erases it. Any of the above starts with erasing.
void progress(std::string_view text);

/// Each entry of `diagnostics` (or, when there are none, the words of `ec`); after the last one
/// `consequence`.
void complain(error_code ec, const Diagnostics& diagnostics, std::string_view consequence = {});

}  // namespace holdfast::cli
