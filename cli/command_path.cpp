// The search in PATH, and what the kernel will look for when it executes what was found.
#include "command_path.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "exit_code.hpp"
#include "message.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {
namespace {

/// 0: can be executed; else an errno.
int executable(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return errno;
    if (S_ISDIR(facts.st_mode)) return EISDIR;
    if (!S_ISREG(facts.st_mode)) return EACCES;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// The interpreter that a script names in its first line; empty when it is none, or unreadable.
std::string interpreter(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[256];  // as much as the kernel looks at
    const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : 0;
    if (n <= 0) return {};
    std::string_view line(text, static_cast<std::size_t>(n));
    if (!line.starts_with("#!")) return {};
    line = line.substr(2, std::min(line.find('\n'), line.size()) - 2);
    const std::size_t from = line.find_first_not_of(" \t");
    if (from == std::string_view::npos) return {};
    return std::string(line.substr(from, line.find_first_of(" \t", from) - from));
}

/// The loader that a program names; empty when it needs none.
std::string loader(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ElfW(Ehdr) head{};
    if (!fd || ::pread(fd.get(), &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head) ||
        std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32))
        return {};
    for (unsigned i = 0; i < head.e_phnum; ++i) {
        ElfW(Phdr) part{};
        const auto at = static_cast<off_t>(head.e_phoff + i * std::size_t{head.e_phentsize});
        if (::pread(fd.get(), &part, sizeof part, at) != static_cast<ssize_t>(sizeof part)) break;
        if (part.p_type != PT_INTERP) continue;
        std::string name(std::min<std::size_t>(part.p_filesz, PATH_MAX), '\0');
        const ssize_t n =
            ::pread(fd.get(), name.data(), name.size(), static_cast<off_t>(part.p_offset));
        name.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return name.c_str();
    }
    return {};
}

/// What the kernel needs besides the file itself and cannot execute; empty when nothing. A script's
/// interpreter may be a script.
std::string missing_helper(const std::string& path, int& error) {
    std::string now = path;
    for (int depth = 0; depth < 5; ++depth) {
        std::string next = interpreter(now);
        if (next.empty()) next = loader(now);
        if (next.empty()) return {};
        error = executable(next);
        if (error != 0) return next;
        now = std::move(next);
    }
    return {};
}

/// What was found in PATH, or named by its path.
CommandPath found(const std::string& word, const std::string& path) {
    int error = 0;
    const std::string helper = missing_helper(path, error);
    if (helper.empty()) return {path, 0, {}};
    const bool missing = error == ENOENT || error == ENOTDIR;
    return {{},
            missing ? exit_not_found : exit_not_executable,
            fmt::format("{} cannot be executed: its interpreter {} {}", in_quotes(word),
                        in_quotes(helper),
                        missing ? "does not exist"
                                : fmt::format("cannot be executed ({})", std::strerror(error)))};
}

CommandPath refused(const std::string& word, int error) {
    if (error == ENOENT || error == ENOTDIR)
        return {{}, exit_not_found, in_quotes(word) + ": command not found"};
    return {{},
            exit_not_executable,
            in_quotes(word) + " cannot be executed: " +
                (error == EISDIR ? "it is a directory" : std::strerror(error))};
}

}  // namespace

CommandPath find_command(const std::string& word) {
    if (word.find('/') != std::string::npos) {
        const int error = executable(word);
        return error == 0 ? found(word, word) : refused(word, error);
    }
    const char* variable = std::getenv("PATH");
    const std::string path = variable ? variable : "/usr/local/bin:/usr/bin:/bin";
    int worst = ENOENT;
    if (!word.empty()) {
        for (std::size_t at = 0; at <= path.size();) {
            const std::size_t end = std::min(path.find(':', at), path.size());
            const std::string folder = path.substr(at, end - at);
            const std::string candidate = (folder.empty() ? "." : folder) + "/" + word;
            const int error = executable(candidate);
            if (error == 0) return found(word, candidate);
            if (error == EACCES) worst = EACCES;
            at = end + 1;
        }
    }
    return refused(word, worst);
}

}  // namespace holdfast::cli
