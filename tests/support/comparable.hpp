// Whether the speed of this program says anything beside that of a bare client, or of the disk.
#pragma once
#include "cap.hpp"

namespace test_support {

/// False where a sanitizer, or the lack of optimisation, slows down this program alone.
inline constexpr bool comparable =
#if defined(__OPTIMIZE__)
    !instrumented;
#else
    false;
#endif

}  // namespace test_support
