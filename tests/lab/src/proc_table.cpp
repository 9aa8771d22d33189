// The name in /proc/PID/stat may contain blanks and brackets, so fields are counted from the last
// closing bracket.
#include "proc_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace holdfast::lab::detail {
namespace {

struct Entry {
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t group = 0;
    char state = '?';
};

std::optional<Entry> read_entry(const std::filesystem::path& stat) {
    std::ifstream file(stat);
    std::string text;
    if (!std::getline(file, text)) {
        return std::nullopt;
    }
    const auto bracket = text.rfind(')');
    if (bracket == std::string::npos) {
        return std::nullopt;
    }
    Entry entry;
    std::istringstream first(text);
    std::istringstream rest(text.substr(bracket + 1));
    if (!(first >> entry.pid) || !(rest >> entry.state >> entry.parent >> entry.group)) {
        return std::nullopt;
    }
    return entry;
}

// The numbered directories below `path`; a process that ends while we look just drops out.
std::vector<std::filesystem::path> numbered(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> result;
    std::error_code error;
    std::filesystem::directory_iterator entries(path, error);
    const std::filesystem::directory_iterator end;
    while (!error && entries != end) {
        const auto name = entries->path().filename().string();
        if (std::all_of(name.begin(), name.end(),
                        [](unsigned char c) { return std::isdigit(c) != 0; })) {
            result.push_back(entries->path());
        }
        entries.increment(error);
    }
    return result;
}

}  // namespace

std::vector<pid_t> family_of(pid_t leader) {
    std::vector<Entry> table;
    for (const auto& directory : numbered("/proc")) {
        const auto entry = read_entry(directory / "stat");
        if (entry && entry->state != 'Z' && entry->state != 'X') {
            table.push_back(*entry);
        }
    }
    std::vector<pid_t> family;
    const auto known = [&](pid_t pid) {
        return std::find(family.begin(), family.end(), pid) != family.end();
    };
    for (const auto& entry : table) {
        if (entry.pid == leader) {
            family.push_back(leader);
        }
    }
    for (bool grown = true; grown;) {
        grown = false;
        for (const auto& entry : table) {
            const bool related =
                entry.group == leader || entry.parent == leader || known(entry.parent);
            if (related && !known(entry.pid)) {
                family.push_back(entry.pid);
                grown = true;
            }
        }
    }
    return family;
}

std::string thread_states(pid_t pid) {
    std::string states;
    for (const auto& directory : numbered(fmt::format("/proc/{}/task", pid))) {
        if (const auto entry = read_entry(directory / "stat")) {
            states += entry->state;
        }
    }
    return states;
}

bool waits_for_stopped_child(pid_t pid) {
    if (thread_states(pid).find('D') == std::string::npos) {
        return false;
    }
    std::error_code error;
    const auto program = [&](pid_t of) {
        return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", of), error);
    };
    const auto own = program(pid);
    for (const auto& directory : numbered("/proc")) {
        const auto entry = read_entry(directory / "stat");
        if (entry && entry->parent == pid && entry->state == 'T' && program(entry->pid) == own) {
            return !error;
        }
    }
    return false;
}

}  // namespace holdfast::lab::detail
