// Out of memory while a request is queued: no answer may then go to another question.
#include <cstdlib>
#include <new>

#include "catch.hpp"
#include "rig.hpp"

namespace {

thread_local int fails_in = 0;  // allocations of this thread; 0: never

struct Scarce {
    explicit Scarce(int allocations) { fails_in = allocations; }
    ~Scarce() { fails_in = 0; }
    Scarce(const Scarce&) = delete;
    Scarce& operator=(const Scarce&) = delete;
};

}  // namespace

// Not inlined: g++ 12 would take malloc and free for mismatched where it sees through only one.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (fails_in > 0 && --fails_in == 0) throw std::bad_alloc();
    if (void* const p = std::malloc(size == 0 ? 1 : size)) return p;
    throw std::bad_alloc();
}
// Asio asks for some of its memory so.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    if (fails_in > 0 && --fails_in == 0) return nullptr;
    return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
    std::free(p);
}

using namespace redis_tests;

TEST_CASE("memory: whichever allocation fails, answers belong to their questions") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try warm("warm");
    REQUIRE(rig.attempt(warm).granted());
    int failed = 0;
    for (int i = 1; i <= 60; ++i) {
        INFO("allocation " << i);
        const std::string number = std::to_string(i);
        // Long names, so that their bytes need memory, too.
        Try t("a" + number + std::string(static_cast<std::size_t>(40 * i), 'x')), u("b" + number);
        t.a.sent = boot_clock::now();
        t.a.deadline = t.a.sent + 2s;
        std::vector<spi::Attempt*> items{&t.a};
        bool done = false;
        boost::asio::co_spawn(rig.io, rig.backend->attempt(items),
                              [&](std::exception_ptr e) { done = true, failed += e ? 1 : 0; });
        try {
            const Scarce scarce(i);
            rig.io.restart();
            rig.io.poll();
        } catch (const std::bad_alloc&) {
            ++failed;
        }
        rig.until([&] { return done; }, "the verb ends");
        holdfast::lab::wait_until([&] { return rig.attempt(u).granted(); }, 10s, "granted");
        CHECK(server.cli({"GET", u.name}).text == u.owner);
        CHECK(rig.withdraw(t) == holdfast::error_code());
        CHECK(rig.release(u) == holdfast::ReleaseResult::released);
    }
    CHECK(failed > 3);
}
