// What is said of a process that cannot be stopped.
#include "refusals.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "message.hpp"

namespace holdfast::cli {
namespace {

struct Facts {
    std::string name, user;
};

/// The user by number: looking up the name may need a server, and this must not wait.
Facts facts_of(pid_t pid) {
    Facts f;
    std::ifstream in(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("Name:\t")) f.name = line.substr(6);
        if (!line.starts_with("Uid:\t")) continue;
        const std::size_t from = line.find('\t', 5) + 1;  // real, then effective
        f.user = line.substr(from, line.find('\t', from) - from);
        if (f.user == "0") f.user = "root";
    }
    return f;
}

}  // namespace

void Refusals::tell(const std::vector<Process>& refused) {
    for (const Process& p : refused) {
        if (!told_.emplace(p.pid, p.started).second) continue;
        const Facts f = facts_of(p.pid);
        complain(fmt::format(
            "process {} ({}) runs as user {}, and holdfast has no permission to stop it: "
            "it continues, possibly beside the next holder of the lock\nTo stop it:  kill {}",
            p.pid, in_quotes(f.name), f.user, p.pid));
    }
}

void Refusals::tell_unseen() {
    if (std::exchange(told_unseen_, true)) return;
    complain(
        "the command has left processes that this user may not see: they continue, possibly beside "
        "the next holder of the lock\nTo find them, as root:  ps -ef");
}

}  // namespace holdfast::cli
