#include "scenario.hpp"

namespace holdfast::bench {

namespace {

std::vector<Scenario> costs() {
    return {
        c1_uncontended(),   c1_tls(),      c1_in_flight(), c1_open_loop(),     c1_documents(),
        c2_ensemble(),      c2_members(),  c2_replicas(),  c3_hand_off(),      c3_polled(),
        c4_redlock_price(), c4a_in_turn(), c5_conflict(),  c5a_idle_waiters(), c6_scale(),
        c7_size(),          c23_readers(), c23a_kinds(),   c32_network(),      peers_beside(),
    };
}

std::vector<Scenario> faults() {
    return {
        c3_burst(),
        c8_counter(),
        c8a_in_process_mutex(),
        c8b_stock(),
        c9_two_commands(),
        c10_release_of_others(),
        c11_long_job(),
        c11a_watchdog(),
        c12_pause(),
        c13_failover(),
        c14_minority(),
        c15_clocks(),
        c16_death(),
        c17_jitter(),
        c18_single_point(),
        c18a_one_of_several(),
        c18b_standby(),
        c19_naive_sql(),
        c19a_state_version(),
        c20_half_done(),
        c20a_identity(),
        c21_reliability(),
        c22_order(),
        c24_names_once(),
        c25_leader(),
        c26_exists_watch(),
        c27_woken(),
        c28_sequence(),
        c29_soft_lock(),
        c30_ranks(),
        c31_ttl(),
        c33_takeover(),
    };
}

}  // namespace

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all = [] {
        std::vector<Scenario> list = costs();
        for (Scenario one : faults()) {
            one.on_all_cores = true;
            list.push_back(std::move(one));
        }
        return list;
    }();
    return all;
}

}  // namespace holdfast::bench
