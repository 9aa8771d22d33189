// The one place that includes the C client's header: it has old-style casts and C99 in it.
#pragma once
#pragma GCC system_header
#include <zookeeper/zookeeper.h>
