// Everything a user of the library needs.
#pragma once
#include "holdfast/client.hpp"           // IWYU pragma: export
#include "holdfast/fenced_resource.hpp"  // IWYU pragma: export
#include "holdfast/mutex.hpp"            // IWYU pragma: export
