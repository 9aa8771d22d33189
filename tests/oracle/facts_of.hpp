// What each backend declares besides its capabilities.
#pragma once
#include <map>
#include <string>

#include "../backends/etcd/facts.hpp"
#include "../backends/redis/facts.hpp"
#include "../backends/redlock/facts.hpp"
#include "../backends/zookeeper/facts.hpp"

namespace oracle {

using namespace std::chrono_literals;

inline const suite::Facts& facts_of(const std::string& backend) {
    static const std::map<std::string, suite::Facts> all{
        {"memory", {.after_break = suite::break_traced}},
        {"sqlite", {.after_break = suite::break_traced}},
        // Server::heard_clock: a ticket's offset stays until it is off by more.
        {"postgresql", {.after_break = suite::break_traced, .tickets_within = 100ms}},
        {"mysql", {.after_break = suite::break_traced, .tickets_within = 100ms}},
        {"redis", suite::redis_facts},
        {"redlock", suite::redlock_facts},
        {"etcd", suite::etcd_facts},
        {"zookeeper", suite::zookeeper_facts},
    };
    return all.at(backend);
}

}  // namespace oracle
