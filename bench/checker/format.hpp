// The file of a history, version 1: a header and records of 64 bytes each, in the byte order of the
// machine. 64 divides the page, so that a record, written by one write() at the end of the file,
// never crosses pages and is there whole or not at all, whenever its process is killed.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace holdfast::bench::history {

inline constexpr std::uint32_t format_version = 1;
inline constexpr std::size_t record_size = 64;
inline constexpr std::array<char, 8> magic{'h', 'f', 'h', 'i', 's', 't', '\r', '\n'};

/// Nanoseconds on CLOCK_BOOTTIME.
using Nanos = std::int64_t;
inline constexpr Nanos never = std::numeric_limits<Nanos>::max();

/// The first 64 bytes. Times of two files compare when boot and time_space are equal.
struct Header {
    std::array<char, 8> magic{};
    std::uint32_t version = 0;
    std::uint32_t check = 0;
    std::uint32_t recorder = 0;  ///< random; the upper half of the ids of this file's acquisitions
    std::int32_t process = 0;
    std::array<char, 16> boot{};   ///< the kernel's boot_id, its first 16 hexadecimal digits
    std::uint64_t time_space = 0;  ///< inode of the process's time name space
    std::array<char, 16> label{};  ///< what people call the process; filled up with zeros
};

enum class Kind : std::uint8_t {
    name = 1,   ///< 40 bytes of a name: `text`; `id` = length << 32 | place; detail = Declared
    invoked,    ///< the call begins
    in_line,    ///< somebody saw that the request stands in the queue
    granted,    ///< the call returned: until, token, owner; detail = Previous
    renewed,    ///< until
    releasing,  ///< the release begins, the belief ends: until; detail = 1: as abandoned
    released,   ///< the release returned; detail = Answer
    lost,       ///< the holder was told: until, the last one believed
    failed,     ///< the call returned without the lock; detail = Outcome; owner, when known
    write,      ///< at a store: token, store in `until`, detail = Write bits, id of the writer or 0
    seen,       ///< somebody looked, from `until` to `at`, and saw `owner` as the holder
    closed,     ///< the process ended in order: nothing follows
    server_killed  ///< of no name: some moment from `until` to `at`; what was not synced is lost
};

enum class Previous : std::uint8_t { unknown, none, released, abandoned, crashed };
enum class Outcome : std::uint8_t { contended, timed_out, cancelled, unavailable, in_doubt, other };
enum class Answer : std::uint8_t { released, already_expired, owned_by_other, unreachable };
enum Declared : std::uint8_t { declares_nothing = 0, declares_fencing = 1, declares_fifo = 2 };
enum WriteBits : std::uint8_t { write_accepted = 1, store_is_fenced = 2 };

/// Enough for the random part of an owner id, which comes first.
using Owner = std::array<char, 24>;

struct Record {
    std::uint32_t check = 0;
    Kind kind{};
    std::uint8_t detail = 0;
    std::uint16_t name = 0;  ///< number of a name in this file
    std::uint64_t id = 0;    ///< of the acquisition: recorder << 32 | 1, 2, ...
    Nanos at = 0;
    Nanos until = 0;
    std::uint64_t token = 0;
    Owner owner{};
};

/// What a record of kind `name` has instead of until, token, owner.
using NamePart = std::array<char, 40>;

static_assert(sizeof(Header) == record_size && sizeof(Record) == record_size);

/// Of 64 bytes whose own field is zero; never zero for zeros. Finds what is torn or damaged by
/// accident, any change within one word of 8 bytes with all but 2^-32.
inline std::uint32_t checksum(const void* bytes) noexcept {
    std::array<std::uint64_t, record_size / 8> words{};
    std::memcpy(words.data(), bytes, record_size);
    std::uint64_t sum = 0x9e3779b97f4a7c15U;
    for (const std::uint64_t word : words) {
        sum = (sum ^ word) * 0xff51afd7ed558ccdU;
        sum ^= sum >> 32U;
    }
    return static_cast<std::uint32_t>(sum);
}

template <class Block>  // Header or Record
void seal(Block& block) noexcept {
    block.check = 0;
    block.check = checksum(&block);
}

template <class Block>
bool intact(Block block) noexcept {
    const std::uint32_t said = block.check;
    block.check = 0;
    return checksum(&block) == said;
}

template <std::size_t N>
void put_text(std::array<char, N>& field, std::string_view text) noexcept {
    field.fill('\0');
    text.copy(field.data(), N);
}

template <std::size_t N>
std::string_view text_of(const std::array<char, N>& field) noexcept {
    return {field.data(), ::strnlen(field.data(), N)};
}

}  // namespace holdfast::bench::history
