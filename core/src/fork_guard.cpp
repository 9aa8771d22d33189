#include "holdfast/detail/fork_generation.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace holdfast {
namespace {

enum Known : unsigned { unknown = 0, being_told = 1, known = 2 };

std::atomic<std::uint64_t> generation{0};

// Zero in a child that has not been here: the kernel sees to that (madvise(2), MADV_WIPEONFORK),
// however the child was made, unless it shares its parent's memory. Kernels without it: only after
// fork(), by the handler.
std::atomic<unsigned>& this_process() noexcept {
    static constinit std::atomic<unsigned> unwiped{unknown};
    static std::atomic<unsigned>& word = []() -> std::atomic<unsigned>& {
        const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        void* page =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED && ::madvise(page, size, MADV_WIPEONFORK) == 0)
            return *::new (page) std::atomic<unsigned>(unknown);
        if (page != MAP_FAILED) ::munmap(page, size);
        ::pthread_atfork(nullptr, nullptr, [] { unwiped.store(unknown); });
        return unwiped;
    }();
    return word;
}
[[maybe_unused]] const auto& this_process_at_load = this_process();

}  // namespace

std::uint64_t fork_generation() noexcept {
    std::atomic<unsigned>& word = this_process();
    while (word.load(std::memory_order_acquire) != known) {
        unsigned expected = unknown;
        if (!word.compare_exchange_strong(expected, being_told)) continue;
        generation.fetch_add(1);
        word.store(known, std::memory_order_release);
    }
    return generation.load(std::memory_order_relaxed);
}

}  // namespace holdfast
