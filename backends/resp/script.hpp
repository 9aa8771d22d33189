// A Lua script, and the SHA1 by which a server that knows it can run it.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

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

/// Made by the first one that asks, and never destroyed: to hash all scripts takes milliseconds,
/// which a program that only has this backend linked does not pay at its start. Two threads may
/// both make one, and one is kept. A static would have a guard instead, which the child of a fork()
/// may find taken for ever.
template <class Make>
const std::invoke_result_t<Make>& made_once(Make make) {
    using Made = std::invoke_result_t<Make>;
    static constinit std::atomic<const Made*> kept{nullptr};
    const Made* there = kept.load(std::memory_order_acquire);
    if (there != nullptr) return *there;
    std::unique_ptr<const Made> mine(new Made(make()));
    return kept.compare_exchange_strong(there, mine.get()) ? *mine.release() : *there;
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
