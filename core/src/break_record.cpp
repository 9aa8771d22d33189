#include "break_record.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "events.hpp"
#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/owner.hpp"
#include "holdfast/spi/safe_text.hpp"

namespace holdfast {
namespace {

using std::chrono::system_clock;

constexpr std::string_view format = "1";
constexpr std::size_t digits = 16;

std::string_view take_word(std::string_view& text) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

template <class Number>
bool read(std::string_view word, Number& n) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

/// A foreign owner's id may be any text, and the record is kept as one line.
std::string printable(std::string_view owner) {
    constexpr std::size_t longest = 512;
    std::string out(owner.substr(0, longest));
    for (char& c : out)
        if (c < ' ' || c > '~') c = '?';
    return out;
}

}  // namespace

std::string to_text(const BreakRecord& r, const std::string& breaker) {
    using std::chrono::duration_cast;
    std::string at = std::to_string(duration_cast<milliseconds>(r.at.time_since_epoch()).count());
    if (at.size() < digits) at.insert(0, digits - at.size(), '0');
    return std::string(format) + ' ' + at + (r.now ? " 1 " : " 0 ") +
           std::to_string(r.token.value) + ' ' + breaker + ' ' + printable(r.owner);
}

std::optional<BreakRecord> read_break_record(std::string_view text) {
    BreakRecord out;
    if (take_word(text) != format) return std::nullopt;
    std::int64_t ms = 0;
    const std::string_view at = take_word(text), now = take_word(text), token = take_word(text);
    const spi::Owner by = spi::parse_owner(take_word(text));
    if (at.size() != digits || !read(at, ms) || ms < 0 || !read(token, out.token.value) ||
        (now != "0" && now != "1") || !by.ours || text.empty())
        return std::nullopt;
    out.at = spi::bounded_time<milliseconds>(ms);
    out.host = by.host;
    out.pid = by.pid;
    out.note = by.note;
    out.owner = printable(text);
    out.now = now == "1";
    return out;
}

std::string this_user() {
    // A user that may set this may also write the record.
    if (const char* caller = std::getenv("SUDO_USER"); caller != nullptr && ::geteuid() == 0)
        return caller;
    std::array<char, 4096> room{};
    passwd entry{};
    passwd* found = nullptr;
    const uid_t uid = ::geteuid();
    if (::getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr)
        return found->pw_name;
    return "uid " + std::to_string(uid);
}

spi::awaitable<spi::Answer<std::vector<Broken>>> break_and_record(Engine& engine, std::string name,
                                                                  BreakOptions options,
                                                                  boot_clock::time_point deadline) {
    auto breaking = engine.backend().break_lock(name, options, deadline);
    auto broken = co_await std::move(breaking);
    if (!broken || broken->empty()) co_return broken;
    BreakRecord record;
    record.at = system_clock::now();
    record.owner = broken->front().holder.owner;
    record.token = broken->front().holder.token;
    record.now = options.now;
    std::string text = to_text(record, spi::make_owner(options.note));
    auto keeping = engine.backend().note(name, std::move(text), deadline);
    const auto kept = co_await std::move(keeping);
    if (!kept && kept.error().why != errc::not_supported)
        engine.events->warn("the break of " + spi::quoted_name(name) +
                            " was not recorded: " + kept.error().text());
    co_return broken;
}

spi::awaitable<spi::Answer<Inspection>> inspect_with_record(spi::Backend& backend, std::string name,
                                                            boot_clock::time_point deadline) {
    auto looking = backend.inspect(name, deadline);
    auto found = co_await std::move(looking);
    if (!found) co_return found;
    auto reading = backend.note(name, std::nullopt, deadline);
    const auto text = co_await std::move(reading);
    if (!text) co_return found;
    auto record = read_break_record(*text);
    const auto now = system_clock::now();
    // Where the server does not end it by itself, and for a clock that was ahead.
    constexpr std::chrono::hours day{24};
    if (record && record->at > now - day && record->at < now + day)
        found->last_break = std::move(record);
    co_return found;
}

}  // namespace holdfast
