// What has to happen on every way out of a scope, also where an exception leaves it.
#pragma once
#include <utility>

namespace holdfast::spi {

/// Calls a function, which must not throw, at its own end.
template <class F>
class [[nodiscard]] ScopeExit {
public:
    explicit ScopeExit(F f) : f_(std::move(f)) {}
    ~ScopeExit() { f_(); }
    ScopeExit(const ScopeExit&) = delete;
    ScopeExit& operator=(const ScopeExit&) = delete;

private:
    F f_;
};

}  // namespace holdfast::spi
