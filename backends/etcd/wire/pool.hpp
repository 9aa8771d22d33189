// Memory for nghttp2, which takes and frees a few small blocks for each call: they are kept for the
// next one.
#pragma once
#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <new>

namespace holdfast::etcd::wire {

/// Must outlive the session.
class Pool {
public:
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
    /// Before each block: how much it holds.
    struct alignas(std::max_align_t) Head {
        std::size_t holds;
    };
    static Pool& of(void* pool) { return *static_cast<Pool*>(pool); }

    void* take(std::size_t size) {
        try {
            return new (blocks_.allocate(sizeof(Head) + size)) Head{size} + 1;
        } catch (const std::bad_alloc&) {  // which C cannot pass on
            return nullptr;
        }
    }
    void give_back(void* at) {
        if (at == nullptr) return;
        Head* const head = static_cast<Head*>(at) - 1;
        blocks_.deallocate(head, sizeof(Head) + head->holds);
    }
    void* resize(void* at, std::size_t size) {
        if (at == nullptr) return take(size);
        const std::size_t holds = (static_cast<Head*>(at) - 1)->holds;
        if (size <= holds) return at;
        void* const larger = take(size);
        if (larger == nullptr) return nullptr;
        std::memcpy(larger, at, holds);
        give_back(at);
        return larger;
    }

    std::pmr::unsynchronized_pool_resource blocks_;
};

}  // namespace holdfast::etcd::wire
