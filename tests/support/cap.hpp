// How long a test waits for what should come about before it fails.
#pragma once
#include <chrono>

namespace test_support {

/// A sanitizer slows this program down, and neither the servers nor bare clients.
inline constexpr bool instrumented =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

/// A cap on waiting, longer where a sanitizer slows everything down. It promises nothing about how
/// soon that comes about: what does is a bound of a Trial (trial.hpp), to which nanoseconds do not
/// convert.
constexpr std::chrono::nanoseconds cap(std::chrono::nanoseconds plain) {
    return plain * (instrumented ? 3 : 1);
}

}  // namespace test_support
