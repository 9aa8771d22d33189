// Owner ids. Every acquisition needs one, so random bytes are fetched in blocks.
#include "holdfast/spi/owner.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>

#include "config/text.hpp"
#include "holdfast/detail/fork_generation.hpp"

namespace holdfast::spi {
namespace {

constexpr std::size_t random_bytes = 16, random_letters = 22;
constexpr std::size_t longest_host = 96, longest_note = 128, longest_id = 512;
constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void append_base64url(std::string& out, const unsigned char* bytes) {
    std::array<char, random_letters> letters{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < 15; i += 3) {
        const unsigned word =
            unsigned{bytes[i]} << 16U | unsigned{bytes[i + 1]} << 8U | unsigned{bytes[i + 2]};
        for (unsigned shift = 18;; shift -= 6) {
            letters[at++] = alphabet[word >> shift & 63U];
            if (shift == 0) break;
        }
    }
    letters[at++] = alphabet[bytes[15] >> 2U];
    letters[at++] = alphabet[(bytes[15] & 3U) << 4U];
    out.append(letters.data(), letters.size());
}

bool plain(char c) {
    return alphabet.find(c) != std::string_view::npos || c == '~';
}

// Dots are encoded too: they separate the fields.
std::string encode(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (plain(c))
            out += c;
        else
            config::append_percent(out, c);
    return out;
}

// The field decoded and made safe to print; nothing when it is not what encode() makes.
std::optional<std::string> decode(std::string_view text) {
    for (const char c : text)
        if (!plain(c) && c != '%') return std::nullopt;
    std::optional<std::string> decoded = config::decode_percent(text);
    if (decoded) decoded = config::printable(std::move(*decoded));
    return decoded;
}

const std::string& host_name() {
    static const std::string host = [] {
        std::array<char, 256> name{};
        if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0')
            return std::string("unknown");
        std::string encoded = encode(name.data());
        if (encoded.size() > longest_host) {
            encoded.resize(longest_host);
            // Not in the middle of an escape.
            if (const auto cut = encoded.find('%', longest_host - 2); cut != std::string::npos)
                encoded.resize(cut);
        }
        return encoded;
    }();
    return host;
}
[[maybe_unused]] const auto& host_name_at_load = host_name();

// What belongs to one process: a child has a copy of its parent's and must not use it.
struct Process {
    std::uint64_t generation = 0;
    std::array<char, longest_host + 16> text{};  // ".host.id"
    std::size_t text_size = 0;
    std::array<unsigned char, 512> random{};
    std::size_t used = sizeof(random);

    std::string_view place() const noexcept { return {text.data(), text_size}; }
    const unsigned char* take_random();
};

Process& this_process() {
    thread_local Process process;
    const auto generation = fork_generation();
    if (process.generation != generation) {
        auto& text = process.text;
        char* end = text.data();
        *end++ = '.';
        end = std::copy(host_name().begin(), host_name().end(), end);
        *end++ = '.';
        end = std::to_chars(end, text.data() + text.size(), ::getpid()).ptr;
        process.text_size = static_cast<std::size_t>(end - text.data());
        process.used = process.random.size();
        process.generation = generation;
    }
    return process;
}

const unsigned char* Process::take_random() {
    if (used + random_bytes > random.size()) {
        for (std::size_t have = 0; have < random.size();) {
            const ssize_t n = ::getrandom(random.data() + have, random.size() - have, 0);
            if (n > 0) {
                have += static_cast<std::size_t>(n);
            } else if (errno != EINTR) {
                throw std::system_error(errno, std::system_category(), "getrandom");
            }
        }
        used = 0;
    }
    const unsigned char* taken = random.data() + used;
    used += random_bytes;
    return taken;
}

}  // namespace

std::string make_owner(std::string_view note) {
    Process& process = this_process();
    std::string id;
    id.reserve(random_letters + process.place().size() + 1 + 3 * note.size());
    append_base64url(id, process.take_random());
    id += process.place();
    if (note.empty()) return id;
    if (note.size() > longest_note) {
        std::size_t cut = longest_note;
        while (cut > longest_note - 4 && (static_cast<unsigned char>(note[cut]) & 0xC0U) == 0x80U)
            --cut;  // not in the middle of a character
        note = note.substr(0, cut);
    }
    id += '.';
    id += encode(note);
    return id;
}

Owner parse_owner(std::string_view id) {
    if (id.size() <= random_letters || id.size() > longest_id || id[random_letters] != '.')
        return {};
    for (const char c : id.substr(0, random_letters))
        if (alphabet.find(c) == std::string_view::npos) return {};
    id.remove_prefix(random_letters + 1);
    std::array<std::string_view, 3> fields{};
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
        if (count == fields.size()) return {};
        const std::size_t dot = id.find('.');
        more = dot != std::string_view::npos;
        fields[count] = id.substr(0, dot);
        if (more) id.remove_prefix(dot + 1);
    }
    Owner owner;
    const std::string_view digits = fields[1];
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), owner.pid);
    auto host = decode(fields[0]), note = decode(fields[2]);
    const bool whole =
        !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
    if (count < 2 || !whole || owner.pid <= 0 || !host || host->empty() || !note) return {};
    owner.host = std::move(*host);
    owner.note = std::move(*note);
    owner.ours = true;
    return owner;
}

}  // namespace holdfast::spi
