// An object whose memory stays readable after its end and shows whether anybody writes there. A
// call through it then meets a null pointer.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace test_support {

template <class T>
class Buried {
public:
    template <class... Args>
    explicit Buried(Args&&... args) : it_(::new (bytes_.data()) T(std::forward<Args>(args)...)) {}
    Buried(const Buried&) = delete;
    Buried& operator=(const Buried&) = delete;
    ~Buried() { end(); }

    T& operator*() const noexcept { return *it_; }
    T* operator->() const noexcept { return it_; }
    void end() {
        if (it_ == nullptr) return;
        std::destroy_at(std::exchange(it_, nullptr));
        std::memset(bytes_.data(), 0, bytes_.size());
    }
    bool untouched() const noexcept {
        return std::all_of(bytes_.begin(), bytes_.end(),
                           [](std::byte b) { return b == std::byte{}; });
    }

private:
    alignas(T) std::array<std::byte, sizeof(T)> bytes_{};
    T* it_;
};

/// A copy of this ends the object when the copy does, as a coroutine's frame does with its locals.
template <class T>
std::shared_ptr<void> frame_of(T& locals) {
    return std::shared_ptr<void>(&locals, [](void* it) { static_cast<T*>(it)->end(); });
}

}  // namespace test_support
