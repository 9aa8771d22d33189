// Marks the symbols that a shared build exports; all others are hidden.
#pragma once
#if defined(__GNUC__)
#define HOLDFAST_EXPORT [[gnu::visibility("default")]]
#else
#define HOLDFAST_EXPORT
#endif
