// Only this header includes the C client's, which has old-style casts and C99.
#pragma once
#pragma GCC system_header
#include <zookeeper/zookeeper.h>
