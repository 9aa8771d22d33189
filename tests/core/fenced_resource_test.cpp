// The check at the store.
#include <holdfast/holdfast.hpp>
#include <thread>

#include "../support/catch.hpp"

namespace hf = holdfast;

TEST_CASE("a fenced resource refuses what comes late", "[core]") {
    hf::FencedResource store;
    std::string value;
    const auto write = [&](std::uint64_t token, const char* text) {
        return store.write(hf::FencingToken{token}, [&] { value = text; });
    };
    CHECK_FALSE(write(0, "without a token"));
    CHECK(write(7, "first"));
    CHECK(write(7, "the same holder again"));
    CHECK(write(9, "the next"));
    CHECK_FALSE(write(8, "late"));
    CHECK_FALSE(write(0, "without a token"));
    CHECK(value == "the next");
    CHECK(store.highest().value == 9);
    store.reset();  // another deployment counts from elsewhere
    CHECK_FALSE(store.highest());
    CHECK(write(1, "new deployment"));
    CHECK(value == "new deployment");
}

TEST_CASE("a write that fails has used its token", "[core]") {
    hf::FencedResource store;
    CHECK_THROWS(store.write(hf::FencingToken{5}, [] { throw std::runtime_error("disk full"); }));
    CHECK(store.highest().value == 5);
    CHECK_FALSE(store.write(hf::FencingToken{4}, [] {}));
    CHECK(store.write(hf::FencingToken{5}, [] {}));
}

TEST_CASE("writes of many threads run one at a time, in no lower order", "[core]") {
    hf::FencedResource store;
    std::vector<std::uint64_t> written;
    std::vector<std::thread> threads;
    std::atomic<std::uint64_t> next{1};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int n = 0; n < 1'000; ++n) {
                const hf::FencingToken token{next++};
                store.write(token, [&] { written.push_back(token.value); });
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(std::is_sorted(written.begin(), written.end()));
    CHECK(written.back() == 4'000);
}
