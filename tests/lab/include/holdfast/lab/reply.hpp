// What a Redis server answered, as a plain value that checks can compare.
#pragma once

#include <string>
#include <vector>

namespace holdfast::lab {

/// One RESP reply.
struct Reply {
    enum class Type { status, error, integer, bulk, array, nil };

    Type type = Type::nil;
    long long integer = 0;        ///< of an integer reply
    std::string text;             ///< of a status, error or bulk reply
    std::vector<Reply> elements;  ///< of an array reply

    [[nodiscard]] bool is_error() const noexcept { return type == Type::error; }
    [[nodiscard]] bool is_nil() const noexcept { return type == Type::nil; }
    [[nodiscard]] bool is_ok() const { return type == Type::status && text == "OK"; }

    friend bool operator==(const Reply&, const Reply&) = default;
};

/// The reply on one line, for messages, in the manner of redis-cli.
[[nodiscard]] std::string to_string(const Reply& reply);

}  // namespace holdfast::lab
