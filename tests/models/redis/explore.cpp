// Goes through all states that can be reached, and tells the way to one that must not be:
// README.md.
#include <array>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>

#include "checked_files.hpp"
#include "model.hpp"

namespace {

using namespace model;

constexpr std::array scenarios{
    // Two clients; a request or an answer of each is lost or comes late, and either may leave.
    Scenario{"pair", 2, 3, 1, 0, 1, 1, false, true, false, false},
    // The holder renews or is too late; the other one is handed the lock, or takes it.
    Scenario{"renewal", 2, 4, 2, 1, 0, 1, false, false, false, true},
    // Either crashes at any moment, and listens no more.
    Scenario{"crash", 2, 3, 2, 0, 0, 1, true, false, false, false},
    // Three in line: messages of hand-overs that are over are still under way.
    Scenario{"line", 3, 3, 1, 0, 0, 1, false, false, false, false},
    // An operator takes the lock away from whoever holds it.
    Scenario{"revoked", 2, 3, 1, 1, 0, 1, false, false, true, true},
    // The server refuses the writes of an attempt.
    Scenario{"refused", 3, 3, 1, 0, 0, 1, false, false, false, false, 1},
    // One of three listens at a replica, which publishes what its primary does (a failover).
    Scenario{"elsewhere", 3, 3, 1, 0, 0, 1, false, false, false, false, 0, 1},
    // Readers and writers: the same dangers, and units in the line.
    Scenario{"readers", 3, 2, 1, 0, 0, 1, false, false, false, false, 0, -1, "ssw"},
    Scenario{"reader", 2, 3, 1, 0, 1, 1, false, true, false, false, 0, -1, "sw"},
    Scenario{"reading", 2, 4, 2, 1, 0, 1, false, false, false, true, 0, -1, "ws"},
    Scenario{"readers-crash", 2, 3, 2, 0, 0, 1, true, false, false, false, 0, -1, "sw"},
    Scenario{"readers-revoked", 2, 3, 1, 1, 0, 1, false, false, true, true, 0, -1, "sw"},
    // A writer becomes a reader while a writer and a reader wait; and with answers that are lost.
    Scenario{"downgrade", 3, 1, 1, 0, 0, 1, false, false, false, false, 0, -1, "dws"},
    Scenario{"downgrade-lost", 2, 2, 1, 1, 1, 1, false, false, false, false, 0, -1, "dw"},
    // Two permits.
    Scenario{"permits", 3, 2, 1, 0, 0, 1, false, false, false, false, 0, -1, "211"},
    Scenario{"permit", 2, 3, 1, 0, 1, 1, false, true, false, false, 0, -1, "21"},
    // The slot of the name moves to another server of a cluster.
    Scenario{"moving", 2, 2, 1, 1, 1, 1, false, true, false, false, 0, -1, "ww", 1},
    Scenario{"moving-readers", 3, 2, 1, 0, 0, 1, false, false, false, false, 0, -1, "sws", 1},
    Scenario{"moving-permits", 2, 2, 1, 1, 1, 1, false, false, false, false, 0, -1, "21", 1},
    Scenario{"moving-downgrade", 2, 2, 1, 1, 0, 1, false, false, false, false, 0, -1, "dw", 2},
};

struct Hash {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& h) const noexcept {
        return h.first;
    }
};

struct Result {
    std::size_t states = 0, steps = 0;
    std::string violation;
    std::vector<std::string> trace;
};

Result explore(const Scenario& scenario, const redis::Scripts& scripts, std::size_t most) {
    Model all(scenario, scripts);
    std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, Hash> seen;
    struct Open {
        State state;
        std::string label;
        bool entered = false;
    };
    std::vector<Open> stack;
    std::vector<std::string> path;
    Result out;
    const auto add = [&](std::string label, State s) {
        forget(s);
        const std::string text = text_of(s);
        const std::hash<std::string> hash;
        if (seen.emplace(hash(text), hash(text + "2")).second)
            stack.push_back({std::move(s), std::move(label)});
    };
    add("start", all.start());
    try {
        while (!stack.empty() && seen.size() < most) {
            if (stack.back().entered) {
                stack.pop_back();
                path.pop_back();
                continue;
            }
            stack.back().entered = true;
            path.push_back(stack.back().label);
            const State here = stack.back().state;
            all.check(here);
            std::string doing;
            all.successors(here, [&](std::string label, State next) {
                ++out.steps;
                add(std::move(label), std::move(next));
            });
        }
        if (!stack.empty()) out.violation = "not explored to the end";
    } catch (const Violation& v) {
        out.violation = v.what();
        out.trace = path;
    }
    out.states = seen.size();
    return out;
}

/// The shipped scripts, with `from` replaced by `to` in all of them.
redis::Scripts changed(const std::string& from, const std::string& to) {
    redis::Scripts s = redis::Scripts::all();
    std::size_t found = 0;
    for (redis::Script* one : {&s.enter_one, &s.enter_many, &s.leave_one, &s.leave_many, &s.renew,
                               &s.enter_units, &s.leave_units, &s.renew_units, &s.tell_holders}) {
        std::string text = one->text();
        for (std::size_t at = 0; !from.empty() && (at = text.find(from, at)) != text.npos;) {
            text.replace(at, from.size(), to);
            at += to.size();
            ++found;
        }
        *one = redis::Script(text);
    }
    if (!from.empty() && found == 0) throw std::runtime_error("no script has: " + from);
    return s;
}

std::string sha_of(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    if (!(text << file.rdbuf())) throw std::runtime_error("cannot read " + path);
    return redis::Script(text.str()).sha();
}

}  // namespace

int main(int argc, char** argv) {
    std::string record, from, to;
    std::set<std::string, std::less<>> only;
    std::size_t most = 20'000'000;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--record" && i + 1 < argc) {
            record = argv[++i];
        } else if (word == "--only" && i + 1 < argc) {
            only.insert(argv[++i]);
        } else if (word == "--most" && i + 1 < argc) {
            most = std::stoul(argv[++i]);
        } else if (word == "--change" && i + 2 < argc) {
            from = argv[++i];
            to = argv[++i];
        } else {
            std::cerr
                << "usage: redis_model [--only SCENARIO]... [--most STATES] [--change FROM TO] "
                   "[--record FILE]\n";
            return 64;
        }
    }
    try {
        const redis::Scripts scripts = changed(from, to);
        std::string report;
        for (const Scenario& scenario : scenarios) {
            if (!only.empty() && !only.contains(scenario.name)) continue;
            const Result r = explore(scenario, scripts, most);
            const std::string line = std::string(scenario.name) + ": " + std::to_string(r.states) +
                                     " states, " + std::to_string(r.steps) + " steps, " +
                                     (r.violation.empty() ? "no violation" : r.violation);
            std::cout << line << std::endl;
            report += line + "\n";
            for (const std::string& step : r.trace)
                std::cout << "    " << step << '\n';
            if (!r.violation.empty()) return 1;
        }
        if (!record.empty() && only.empty() && from.empty()) {
            std::ofstream file(record);
            file << report;
            for (const auto& [name, script] : redis::checked_scripts())
                file << name << ' ' << script->sha() << '\n';
            for (const char* name : redis_model::checked_files)
                file << name << ' ' << sha_of(REDIS_PROTOCOL "/" + std::string(name)) << '\n';
            if (!file.flush()) throw std::runtime_error("cannot write " + record);
        }
    } catch (const std::exception& e) {
        std::cerr << "redis_model: " << e.what() << '\n';
        return 2;
    }
    return 0;
}
