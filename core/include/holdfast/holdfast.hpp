// Everything a user of the library needs, but for coroutines (async_with_lock.hpp) and the fake
// server for tests (testing.hpp).
#pragma once
#include "holdfast/acquire_all.hpp"         // IWYU pragma: export
#include "holdfast/client.hpp"              // IWYU pragma: export
#include "holdfast/counting_semaphore.hpp"  // IWYU pragma: export
#include "holdfast/election.hpp"            // IWYU pragma: export
#include "holdfast/fenced_resource.hpp"     // IWYU pragma: export
#include "holdfast/log.hpp"                 // IWYU pragma: export
#include "holdfast/mutex.hpp"               // IWYU pragma: export
#include "holdfast/prometheus.hpp"          // IWYU pragma: export
#include "holdfast/recursive_mutex.hpp"     // IWYU pragma: export
#include "holdfast/reentrant.hpp"           // IWYU pragma: export
#include "holdfast/shared_mutex.hpp"        // IWYU pragma: export
