// The one place of the bench that includes the ZooKeeper C client's header: it has old-style casts.
#pragma once
#pragma GCC system_header
#include <zookeeper/zookeeper.h>
