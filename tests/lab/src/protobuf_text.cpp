#include "holdfast/lab/protobuf_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace holdfast::lab {
namespace {

std::optional<std::uint64_t> read_number(std::string_view& from) {
    std::uint64_t out = 0;
    for (unsigned shift = 0; !from.empty() && shift < 64; shift += 7) {
        const unsigned char byte = static_cast<unsigned char>(from.front());
        from.remove_prefix(1);
        out |= std::uint64_t{byte & 127U} << shift;
        if (byte < 128) {
            return out;
        }
    }
    return std::nullopt;
}

std::optional<std::string> message_text(std::string_view from);

std::string bytes_text(std::string_view bytes) {
    if (std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
        return fmt::format("\"{}\"", bytes);
    }
    if (const auto inner = message_text(bytes)) {
        return "{" + *inner + "}";
    }
    std::string out = "0x";
    for (const char c : bytes) {
        out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    }
    return out;
}

/// Nullopt: it is no message.
std::optional<std::string> message_text(std::string_view from) {
    std::string out;
    while (!from.empty()) {
        const auto tag = read_number(from);
        if (!tag || *tag >> 3U == 0 || *tag >> 3U > 1'000) {
            return std::nullopt;
        }
        const auto number = (*tag & 7U) == 0 || (*tag & 7U) == 2 ? read_number(from) : std::nullopt;
        if (!number || ((*tag & 7U) == 2 && *number > from.size())) {
            return std::nullopt;
        }
        out += fmt::format("{}{}: ", out.empty() ? "" : " ", *tag >> 3U);
        if ((*tag & 7U) == 0) {
            out += fmt::format("{}", static_cast<std::int64_t>(*number));
        } else {
            out += bytes_text(from.substr(0, *number));
            from.remove_prefix(*number);
        }
    }
    return out;
}

}  // namespace

std::string protobuf_text(std::string_view message) {
    return message_text(message).value_or(bytes_text(message));
}

}  // namespace holdfast::lab
