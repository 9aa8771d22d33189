// Why not fork: between fork and exec of a threaded process almost nothing may be called, and the
// sanitizers' runtimes know it less well than posix_spawn does.
#include "spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {
namespace {

// A descriptor number high enough that no dup2 to a standard number can run over it.
class HighDescriptor {
public:
    explicit HighDescriptor(int fd) : fd_(::fcntl(fd, F_DUPFD_CLOEXEC, 10)) {
        if (fd_ < 0) {
            throw LabError("cannot duplicate a descriptor");
        }
    }
    HighDescriptor(const HighDescriptor&) = delete;
    HighDescriptor& operator=(const HighDescriptor&) = delete;
    ~HighDescriptor() { ::close(fd_); }
    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_;
};

struct Actions {
    Actions() { ::posix_spawn_file_actions_init(&value); }
    Actions(const Actions&) = delete;
    Actions& operator=(const Actions&) = delete;
    ~Actions() { ::posix_spawn_file_actions_destroy(&value); }
    posix_spawn_file_actions_t value;
};

struct Attributes {
    Attributes() { ::posix_spawnattr_init(&value); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    ~Attributes() { ::posix_spawnattr_destroy(&value); }
    posix_spawnattr_t value;
};

std::vector<std::string> merged_environment(
    const std::vector<std::pair<std::string, std::string>>& additions) {
    std::vector<std::string> merged;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const auto name = text.substr(0, text.find('='));
        const bool replaced = std::any_of(additions.begin(), additions.end(),
                                          [&](const auto& one) { return one.first == name; });
        if (!replaced) {
            merged.emplace_back(text);
        }
    }
    for (const auto& [name, value] : additions) {
        merged.push_back(name + "=" + value);
    }
    return merged;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (auto& word : words) {
        result.push_back(word.data());
    }
    result.push_back(nullptr);
    return result;
}

}  // namespace

pid_t spawn(const SpawnRequest& request) {
    Actions actions;
    std::vector<std::unique_ptr<HighDescriptor>> sources;
    int highest = 2;
    for (int standard = 0; standard <= 2; ++standard) {
        const bool named = std::any_of(request.descriptors.begin(), request.descriptors.end(),
                                       [&](const auto& one) { return one.second == standard; });
        if (!named) {
            ::posix_spawn_file_actions_addopen(&actions.value, standard, "/dev/null", O_RDWR, 0);
        }
    }
    for (const auto& [ours, theirs] : request.descriptors) {
        sources.push_back(std::make_unique<HighDescriptor>(ours));
        ::posix_spawn_file_actions_adddup2(&actions.value, sources.back()->get(), theirs);
        highest = std::max(highest, theirs);
    }
    ::posix_spawn_file_actions_addclosefrom_np(&actions.value, highest + 1);
    ::posix_spawn_file_actions_addchdir_np(&actions.value, request.directory.c_str());

    Attributes attributes;
    sigset_t set;
    ::sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes.value, &set);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2,
                             SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM}) {
        ::sigaddset(&set, number);
    }
    ::posix_spawnattr_setsigdefault(&attributes.value, &set);
    ::posix_spawnattr_setpgroup(&attributes.value, 0);
    const int place = request.new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    ::posix_spawnattr_setflags(
        &attributes.value,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | place));

    auto argv = request.argv;
    auto environment = merged_environment(request.environment);
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, argv.at(0).c_str(), &actions.value, &attributes.value,
                                    pointers(argv).data(), pointers(environment).data());
    if (error != 0) {
        throw LabError(fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
    }
    return pid;
}

std::string find_program(const std::string& program) {
    if (program.find('/') != std::string::npos) {
        return ::access(program.c_str(), X_OK) == 0 ? program : std::string();
    }
    const char* path = std::getenv("PATH");
    std::string places = path != nullptr ? path : "";
    places += ":/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
    for (std::size_t begin = 0; begin <= places.size();) {
        const auto end = std::min(places.find(':', begin), places.size());
        if (end > begin) {
            auto candidate = places.substr(begin, end - begin) + "/" + program;
            if (::access(candidate.c_str(), X_OK) == 0) {
                return candidate;
            }
        }
        begin = end + 1;
    }
    return {};
}

}  // namespace holdfast::lab::detail
