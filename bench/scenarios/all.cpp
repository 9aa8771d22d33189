#include "scenario.hpp"

namespace holdfast::bench {

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all{
        c1_uncontended(),   c1_in_flight(),   c3_hand_off(),      c4_redlock_price(),
        c5a_idle_waiters(), c7_size(),        c8_counter(),       c8a_in_process_mutex(),
        c8b_stock(),        c12_pause(),      c13_failover(),     c14_minority(),
        c15_clocks(),       c16_death(),      c18_single_point(), c18b_standby(),
        c22_order(),        c24_names_once(),
    };
    return all;
}

}  // namespace holdfast::bench
