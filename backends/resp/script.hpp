// A Lua script, and the SHA1 by which a server that knows it can run it.
#pragma once
#include <string>
#include <string_view>

#include "codec.hpp"

namespace holdfast::resp {

class Script {
public:
    explicit Script(std::string text);
    const std::string& text() const noexcept { return text_; }
    const std::string& sha() const noexcept { return sha_; }

private:
    std::string text_, sha_;
};

/// Joins several texts into one script.
template <class... Texts>
Script join(Texts... texts) {
    return Script((std::string(texts) + ...));
}

/// One text without the line ends around it, where the servers' documentation has it so.
inline Script as_documented(std::string_view text) {
    return Script(std::string(text.substr(1, text.size() - 2)));
}

/// Begins an EVALSHA; keys and arguments follow.
inline void begin(Command& c, const Script& s, long long keys) {
    c.clear();
    c.add("EVALSHA").add(s.sha()).add_number(keys);
}
/// The same call with the whole text, for a server that has forgotten the script.
inline void with_text(Command& c, const Script& s) {
    c.replace(0, "EVAL");
    c.replace(1, s.text());
}

/// True if the server answered that it does not know the script: nothing was done.
bool forgotten(const Reply&) noexcept;

}  // namespace holdfast::resp
