// The Redis protocol as values: commands to bytes, bytes to replies. hiredis parses; its headers
// stay in codec.cpp. The server is not trusted: everything has a limit.
#pragma once
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::resp {

/// One reply. Only the first `count` of `elements` belong to it: a codec that is reused keeps the
/// others, so that it allocates nothing.
struct Reply {
    enum class Type : std::uint8_t { nil, status, error, integer, bulk, array };
    Type type = Type::nil;
    long long integer = 0;
    std::string text;  ///< of a status, error or bulk reply
    std::vector<Reply> elements;
    std::size_t count = 0;  ///< of an array reply

    bool is(Type t) const noexcept { return type == t; }
    std::span<const Reply> items() const noexcept { return {elements.data(), count}; }
    /// A status or bulk text.
    bool is_text() const noexcept { return type == Type::status || type == Type::bulk; }
};

/// A command under construction. Texts must live until encode(); numbers are copied. Not
/// thread-safe; clear() keeps the memory.
class Command {
public:
    void clear() noexcept;
    Command& add(std::string_view text);
    Command& add_number(long long number);
    /// Replaces a text added before.
    void replace(std::size_t index, std::string_view text) noexcept;
    /// Appends the command's bytes to `out`. Throws std::bad_alloc.
    void encode(std::string& out) const;
    std::size_t size() const noexcept { return words_.size(); }

private:
    struct Word {
        const char* text;  // null: the next of the numbers, which may still move
        std::size_t size;
    };
    // Enough for one lock's command without the heap.
    boost::container::small_vector<Word, 16> words_;
    boost::container::small_vector<std::array<char, 24>, 4> numbers_;
};

/// Reads replies from a stream of bytes. Unusable after an error: close the connection. Not
/// thread-safe.
class Codec {
public:
    /// `limit`: the most bytes of one reply.
    explicit Codec(std::size_t limit);
    ~Codec();
    Codec(const Codec&) = delete;
    Codec& operator=(const Codec&) = delete;

    /// False: too much data, or an earlier error.
    bool feed(std::string_view bytes) noexcept;
    enum class Next : std::uint8_t { more, reply, broken };
    /// The next complete reply, which stays valid until the next call.
    Next next() noexcept;
    Reply& reply() noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The part before the next space, which `rest` then leaves behind.
std::string_view word(std::string_view& rest) noexcept;
/// 0 for other text; never too large to be multiplied by 1000.
std::int64_t number(std::string_view) noexcept;

}  // namespace holdfast::resp
