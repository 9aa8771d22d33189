// The processor's cores that the bench and all that it has started run on.
#pragma once

namespace holdfast::bench {

/// Pins this thread, and whatever it starts, to one core; returns which, or -1 on failure.
int pin_to_one_core();

/// Gives this process, and all that it has started, the cores back that pin_to_one_core took. A
/// process that ends meanwhile, or is another user's, is left out.
void use_all_cores();

}  // namespace holdfast::bench
