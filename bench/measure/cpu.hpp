// Processor time, of this process and of servers.
#pragma once
#include <sys/types.h>

#include <vector>

namespace holdfast::bench {

/// User and system time of this process so far, all its threads.
double own_cpu_ms();

/// Time of these processes on a processor so far, by the scheduler's count; threads and processes
/// that have ended count nothing.
double cpu_ms_of(const std::vector<pid_t>& processes);

}  // namespace holdfast::bench
