#include "floors/trace.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

namespace holdfast::bench {

namespace {

/// Where argument `i` begins in resp().
std::vector<std::size_t> starts(const std::vector<std::string>& arguments) {
    std::vector<std::size_t> at;
    std::size_t here = 1 + std::to_string(arguments.size()).size() + 2;
    for (const auto& a : arguments) {
        here += 1 + std::to_string(a.size()).size() + 2;
        at.push_back(here);
        here += a.size() + 2;
    }
    return at;
}

constexpr std::size_t fresh_part = 22;  // of an owner id: what makes it unique

/// Owner ids by their unique beginning, as far as they are known.
class OwnerIndex {
public:
    explicit OwnerIndex(const std::vector<Grant>& grants) {
        for (std::size_t i = 0; i < grants.size(); ++i)
            if (grants[i].owner.size() >= fresh_part)
                index_.emplace(grants[i].owner.substr(0, fresh_part), i);
    }
    /// Every owner id inside `text`: position and index.
    std::vector<std::pair<std::size_t, std::size_t>> in(const std::string& text) const {
        std::vector<std::pair<std::size_t, std::size_t>> found;
        for (std::size_t at = 0; at + fresh_part <= text.size(); ++at) {
            const auto hit = index_.find(text.substr(at, fresh_part));
            if (hit == index_.end()) continue;
            found.emplace_back(at, hit->second);
            at += fresh_part - 1;
        }
        return found;
    }

private:
    std::unordered_map<std::string, std::size_t> index_;
};

void note_owner(Trace::Command& command, std::size_t owner) {
    if (std::find(command.owners.begin(), command.owners.end(), owner) == command.owners.end())
        command.owners.push_back(owner);
}

/// A number that is a wall clock near `seconds`: in ms (13 digits) or us (16 digits).
void patch_time(Trace::Command& command, const std::string& argument, std::size_t at,
                double seconds) {
    if (argument.size() != 13 && argument.size() != 16) return;
    long long number = 0;
    const auto* end = argument.data() + argument.size();
    const auto read = std::from_chars(argument.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end) return;
    const bool micros = argument.size() == 16;
    const double offset = static_cast<double>(number) - seconds * (micros ? 1e6 : 1e3);
    const double day = 86400 * (micros ? 1e6 : 1e3);
    if (std::abs(offset) > day) return;
    command.patches.push_back({micros ? Trace::Patch::Kind::micros : Trace::Patch::Kind::millis, at,
                               0, std::llround(offset)});
}

}  // namespace

std::string resp(const std::vector<std::string>& arguments) {
    std::string out = "*" + std::to_string(arguments.size()) + "\r\n";
    for (const auto& a : arguments)
        out += "$" + std::to_string(a.size()) + "\r\n" + a + "\r\n";
    return out;
}

std::size_t Trace::window() const {
    if (commands.empty() || grants.empty()) return 1;
    const double per_step =
        static_cast<double>(commands.size()) / (2.0 * static_cast<double>(grants.size()));
    const auto wanted = std::llround(static_cast<double>(in_flight) * per_step);
    return static_cast<std::size_t>(std::max(1LL, wanted));
}

Trace plain_pair(const std::vector<std::string>& names, const std::string& script_sha) {
    Trace trace;
    trace.in_flight = names.size();
    const auto add = [&](const std::vector<std::string>& arguments, std::size_t owner_argument,
                         std::size_t owner) {
        Trace::Command command;
        command.bytes = resp(arguments);
        command.patches.push_back(
            {Trace::Patch::Kind::owner, starts(arguments)[owner_argument], owner, 0});
        command.owners.push_back(owner);
        trace.commands.push_back(std::move(command));
    };
    for (const auto& name : names)
        trace.grants.push_back({name, std::string(fresh_part, 'x')});
    for (std::size_t i = 0; i < names.size(); ++i)
        add({"SET", names[i], trace.grants[i].owner, "NX", "PX", "10000"}, 2, i);
    for (std::size_t i = 0; i < names.size(); ++i)
        add({"EVALSHA", script_sha, "1", names[i], trace.grants[i].owner}, 4, i);
    return trace;
}

Trace bare_round_trips(bool written) {
    Trace trace;
    trace.grants.push_back({"", ""});
    for (int i = 0; i < 2; ++i) {
        Trace::Command command;
        command.bytes = written ? resp({"SET", "holdfast-bench-scratch", "x"}) : resp({"PING"});
        trace.commands.push_back(std::move(command));
    }
    return trace;
}

Trace recorded(const std::vector<lab::MonitorLine>& lines, std::vector<Grant> grants,
               std::size_t in_flight) {
    Trace trace;
    trace.in_flight = in_flight;
    const OwnerIndex owners(grants);
    for (const auto& line : lines) {
        if (line.client == "lua") continue;
        Trace::Command command;
        const auto at = starts(line.command);
        for (std::size_t a = 0; a < line.command.size(); ++a) {
            for (const auto& [offset, owner] : owners.in(line.command[a])) {
                command.patches.push_back({Trace::Patch::Kind::owner, at[a] + offset, owner, 0});
                note_owner(command, owner);
            }
            patch_time(command, line.command[a], at[a], line.time);
        }
        if (command.owners.empty()) continue;
        command.bytes = resp(line.command);
        trace.commands.push_back(std::move(command));
    }
    trace.grants = std::move(grants);
    return trace;
}

}  // namespace holdfast::bench
