// Which symbols a shared build shows. Everything else is hidden.
#pragma once
#if defined(__GNUC__)
#define HOLDFAST_EXPORT [[gnu::visibility("default")]]
#else
#define HOLDFAST_EXPORT
#endif
