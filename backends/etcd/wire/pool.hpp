// Memory for nghttp2, which takes and frees a few small blocks for each call: they are kept for the
// next one.
#pragma once
#include <nghttp2/nghttp2.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace holdfast::etcd::wire {

/// Must outlive the session.
class Pool {
public:
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
        for (Block* kept : kept_)
            while (kept != nullptr)
                std::free(std::exchange(kept, kept->next));
    }
    nghttp2_mem functions() {
        return {this, [](std::size_t size, void* pool) { return of(pool).take(size); },
                [](void* at, void* pool) { of(pool).give_back(at); },
                [](std::size_t n, std::size_t each, void* pool) {
                    void* const at = of(pool).take(n * each);
                    return at == nullptr ? nullptr : std::memset(at, 0, n * each);
                },
                [](void* at, std::size_t size, void* pool) { return of(pool).resize(at, size); }};
    }

private:
    static constexpr std::size_t step = 64, classes = 16;
    /// Before each block: its class, or, beyond all classes, what it holds.
    struct alignas(std::max_align_t) Block {
        std::size_t holds;
        Block* next;
    };
    static Pool& of(void* pool) { return *static_cast<Pool*>(pool); }

    void* take(std::size_t size) {
        const std::size_t which = size / step;
        if (which < classes && kept_[which] != nullptr)
            return std::exchange(kept_[which], kept_[which]->next) + 1;
        const std::size_t holds = which < classes ? (which + 1) * step - 1 : size;
        auto* const made = static_cast<Block*>(std::malloc(sizeof(Block) + holds));
        if (made == nullptr) return nullptr;
        made->holds = holds;
        return made + 1;
    }
    void give_back(void* at) {
        if (at == nullptr) return;
        Block* const block = static_cast<Block*>(at) - 1;
        const std::size_t which = block->holds / step;
        if (which >= classes) return std::free(block);
        block->next = std::exchange(kept_[which], block);
    }
    void* resize(void* at, std::size_t size) {
        if (at == nullptr) return take(size);
        const std::size_t holds = (static_cast<Block*>(at) - 1)->holds;
        if (size <= holds) return at;
        void* const larger = take(size);
        if (larger == nullptr) return nullptr;
        std::memcpy(larger, at, holds);
        give_back(at);
        return larger;
    }

    std::array<Block*, classes> kept_{};
};

}  // namespace holdfast::etcd::wire
