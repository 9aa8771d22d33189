// A scenario is data and functions: the runner knows nothing of any of them but this.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench.hpp"

namespace holdfast::bench {

/// One line of progress.
struct Step {
    std::string label;  ///< "redis hand-off n=100"
    std::function<void(Bench&)> run;
};

struct Scenario {
    std::string id;       ///< "C1": the claim it puts to the test
    std::string title;    ///< for --list and the page
    std::string method;   ///< how it is measured, one or two sentences
    bool on_own_servers;  ///< part of a run on the user's own servers
    std::vector<Step> (*plan)(const Options&, const Site&);
    /// Costs are compared on one core. What makes faults and counts starts many processes, and has
    /// all cores.
    bool on_all_cores = false;
};

/// All scenarios, in the order in which they run.
const std::vector<Scenario>& scenarios();

// One file each in scenarios/.
Scenario c1_uncontended();
Scenario c1_tls();
Scenario c1_in_flight();
Scenario c1_open_loop();
Scenario c1_documents();
Scenario c2_ensemble();
Scenario c2_members();
Scenario c2_replicas();
Scenario c3_hand_off();
Scenario c3_burst();
Scenario c3_polled();
Scenario c4_redlock_price();
Scenario c4a_in_turn();
Scenario c5_conflict();
Scenario c5a_idle_waiters();
Scenario c6_scale();
Scenario c7_size();
Scenario c8_counter();
Scenario c8a_in_process_mutex();
Scenario c8b_stock();
Scenario c9_two_commands();
Scenario c10_release_of_others();
Scenario c11_long_job();
Scenario c11a_watchdog();
Scenario c12_pause();
Scenario c13_failover();
Scenario c14_minority();
Scenario c15_clocks();
Scenario c16_death();
Scenario c17_jitter();
Scenario c18_single_point();
Scenario c18a_one_of_several();
Scenario c18b_standby();
Scenario c19_naive_sql();
Scenario c19a_state_version();
Scenario c20_half_done();
Scenario c20a_identity();
Scenario c21_reliability();
Scenario c22_order();
Scenario c23_readers();
Scenario c23a_kinds();
Scenario c24_names_once();
Scenario c25_leader();
Scenario c26_exists_watch();
Scenario c27_woken();
Scenario c28_sequence();
Scenario c29_soft_lock();
Scenario c30_ranks();
Scenario c31_ttl();
Scenario c32_network();
Scenario c33_takeover();
Scenario peers_beside();

}  // namespace holdfast::bench
