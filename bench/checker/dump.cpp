// A history as text, record by record.
#include <cinttypes>
#include <cstdio>
#include <system_error>

#include "checker/blocks.hpp"
#include "checker/history.hpp"

namespace holdfast::bench::history {

namespace {

constexpr std::array<const char*, 14> kinds{
    "?",        "name", "invoked", "in_line", "granted", "renewed", "releasing",
    "released", "lost", "failed",  "write",   "seen",    "closed",  "server_killed"};

std::string line(const Record& r) {
    const auto kind = static_cast<std::size_t>(r.kind);
    const bool known = kind < kinds.size() && kind != 0;
    std::array<char, 160> text{};
    const auto id = static_cast<std::uint32_t>(r.id);
    std::snprintf(text.data(), text.size(),
                  "%" PRId64 " %s name=%u recorder=%08" PRIx32 " #%" PRIu32 " detail=%u", r.at,
                  known ? kinds[kind] : "?", r.name, static_cast<std::uint32_t>(r.id >> 32U), id,
                  r.detail);
    std::string out = text.data();
    if (r.kind == Kind::name) {
        NamePart part{};
        std::memcpy(part.data(), reinterpret_cast<const char*>(&r) + offsetof(Record, until),
                    part.size());
        return out + " text=" + std::string(text_of(part));
    }
    if (r.until != 0) out += " until=" + std::to_string(r.until);
    if (r.token != 0) out += " token=" + std::to_string(r.token);
    if (r.owner[0] != '\0') out += " owner=" + std::string(text_of(r.owner));
    return out;
}

}  // namespace

std::string dump(const std::filesystem::path& file) {
    Blocks blocks(file.string());
    std::string out;
    const char* block = blocks.next();
    if (block != nullptr) {
        Header head;
        std::memcpy(&head, block, sizeof head);
        out += intact(head) && head.magic == magic
                   ? "version " + std::to_string(head.version) + ", process " +
                         std::to_string(head.process) + " \"" + std::string(text_of(head.label)) +
                         "\"\n"
                   : "damaged header\n";
    }
    while ((block = blocks.next()) != nullptr) {
        Record record;
        std::memcpy(&record, block, sizeof record);
        out += (intact(record) ? line(record) : "damaged record") + '\n';
    }
    if (blocks.rest() != 0) out += std::to_string(blocks.rest()) + " bytes of a record cut off\n";
    if (blocks.error() != 0) out += std::generic_category().message(blocks.error()) + '\n';
    return out;
}

}  // namespace holdfast::bench::history
