// A node that runs the scripts as they are shipped, in Lua 5.1, and what rounds ask of all nodes.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../../models/redis/server.hpp"
#include "rounds.hpp"

namespace redlock_tests {

namespace rl = holdfast::redlock;
using holdfast::boot_clock;
using holdfast::milliseconds;
using holdfast::spi::Units;
using rl::Ask;
using rl::Reply;

inline constexpr Units reader{.take = 1, .of = Units::all, .mode = holdfast::Mode::shared};

struct FakeVoters : rl::Voters {
    std::size_t n = 3;
    std::string place = "node";
    std::size_t size() const noexcept override { return n; }
    bool votes(std::size_t, boot_clock::time_point) const noexcept override { return true; }
    bool answers() const noexcept override { return true; }
    holdfast::spi::Failure refused() const override { return {}; }
    std::uint64_t propose(boot_clock::time_point) const override { return 1'000'000'000'000'000; }
    void saw(std::uint64_t) noexcept override {}
    const std::string& where(std::size_t) const noexcept override { return place; }
    std::string trouble(std::size_t, boot_clock::time_point) const override { return {}; }
};

inline constexpr milliseconds node_ttl{10'000};

inline Reply text(std::string words) {
    Reply r;
    r.type = Reply::Type::bulk;
    r.text = std::move(words);
    return r;
}

/// How that number `word` of a request is what a test expects: see Ask.
inline std::string word_of(const Ask& a, std::size_t argument) {
    return (*a.words)[a.verb->keys + argument];
}

/// One node.
class Node {
public:
    Reply run(const Ask& a, boot_clock::time_point at) {
        static model::Lua lua;
        const auto& words = *a.words;
        const auto split = words.begin() + static_cast<std::ptrdiff_t>(a.verb->keys);
        std::vector<std::string> arguments(split, words.end());
        if (a.deadline_word != 0)
            arguments[a.deadline_word - a.verb->keys] =
                std::to_string(a.length ? std::max<std::int64_t>(ms_of(a.deadline) - ms_of(at), 0)
                                        : ms_of(a.deadline));
        store.now = ms_of(at);
        const auto answer =
            lua.run(std::string(a.verb->one.text()), {words.begin(), split}, arguments, store, wire)
                .at(0);
        const auto& all = rl::Scripts::all();
        if (a.verb != &all.release && a.verb != &all.leave && a.verb != &all.give_back)
            return text(answer);
        Reply r;
        r.type = Reply::Type::integer;
        r.integer = std::stoll(answer);
        return r;
    }
    model::Store store;
    model::Wire wire;

private:
    static std::int64_t ms_of(boot_clock::time_point at) {
        return 1'000'000'000'000 + std::chrono::floor<milliseconds>(at.time_since_epoch()).count();
    }
};

}  // namespace redlock_tests
