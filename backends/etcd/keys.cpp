#include "keys.hpp"

#include <charconv>

#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/net/percent.hpp"

namespace holdfast::etcd {
namespace {

// "hf1", "s" of a reader or "pLIMIT:PERMITS", "dMILLISECONDS" of a lock_delay, "?" or "!" of a
// holder that is asked to release or was revoked, a blank, the owner. So a mutex's is "hf1 OWNER".
constexpr std::string_view ours = "hf1";
constexpr char shared = 's', permits = 'p', of = ':', delay = 'd', asked = '?', revoked = '!';

bool skip(std::string_view& text, char c) noexcept {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

template <class Number>
bool take_number(std::string_view& text, Number& n) noexcept {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    return read.ec == std::errc() && n > 0;
}

std::string below(const Options& o, std::string_view folder, std::string_view name) {
    std::string out = o.root;
    out += folder;
    spi::net::append_component(out, o.prefix);
    spi::net::append_component(out, name);
    return out;
}

}  // namespace

std::string line_of(const Options& o, std::string_view name) {
    return names_from(o, name) + "/";
}

std::string_view name_key(std::string_view line) {
    line.remove_suffix(1);
    return line;
}

std::optional<std::string> name_of(const Options& o, std::string_view key) {
    if (!key.starts_with(o.root)) return std::nullopt;
    key.remove_prefix(o.root.size());
    const auto end = key.find('/');
    if (end == key.npos || key.find('/', end + 1) != key.npos) return std::nullopt;
    auto full = spi::net::read_component(key.substr(0, end));
    if (!full || !full->starts_with(o.prefix)) return std::nullopt;
    return full->substr(o.prefix.size());
}

std::string names_from(const Options& o, std::string_view prefix) {
    return below(o, {}, prefix);
}

// No name is escaped to this.
std::string tombstone_of(const Options& o, std::string_view owner) {
    return o.root + "%gone/" + std::string(owner);
}

std::string marks_of(const Options& o, std::string_view name) {
    return below(o, "%mark/", name) + "/";
}

std::string record_of(const Options& o, std::string_view name) {
    return below(o, "%revoked/", name);
}

std::string after(std::string prefix) {
    prefix.back() = static_cast<char>(prefix.back() + 1);  // of '/' or printable: never the last
    return prefix;
}

std::string write_entry(const Entry& e) {
    std::string out(ours);
    if (e.units.mode == Mode::shared) out += shared;
    if (e.units.permits()) out = compatible_prefix(e.units) + std::to_string(e.units.take);
    if (e.lock_delay > milliseconds::zero()) out += delay + std::to_string(e.lock_delay.count());
    if (e.flag != Entry::Flag::none) out += e.flag == Entry::Flag::asked ? asked : revoked;
    out += ' ';
    return out += e.owner;
}

std::optional<Entry> read_entry(std::string_view value) {
    if (!value.starts_with(ours)) return std::nullopt;
    value.remove_prefix(ours.size());
    Entry out;
    if (skip(value, shared)) {
        out.units = {1, spi::Units::all, Mode::shared};
    } else if (skip(value, permits)) {
        if (!take_number(value, out.units.of) || !skip(value, of) ||
            !take_number(value, out.units.take) || out.units.take > out.units.of)
            return std::nullopt;
    }
    milliseconds::rep ms = 0;
    if (skip(value, delay) && (!take_number(value, ms) || ms < 0)) return std::nullopt;
    out.lock_delay = spi::bounded_length<milliseconds>(ms);
    if (skip(value, asked)) out.flag = Entry::Flag::asked;
    if (skip(value, revoked)) out.flag = Entry::Flag::revoked;
    if (!skip(value, ' ') || value.empty()) return std::nullopt;
    out.owner = value;
    return out;
}

spi::Units units_in(std::string_view value) {
    const auto entry = read_entry(value);
    return entry ? entry->units : spi::Units();
}

std::string compatible_prefix(const spi::Units& u) {
    std::string out(ours);
    if (!u.permits()) return out + shared;
    return out + permits + std::to_string(u.of) + of;
}

}  // namespace holdfast::etcd
