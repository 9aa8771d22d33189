// The search in PATH.
#include "command_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "exit_code.hpp"
#include "message.hpp"

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

CommandPath refused(const std::string& word, int error) {
    if (error == ENOENT || error == ENOTDIR)
        return {{}, exit_not_found, in_quotes(word) + ": there is no such command"};
    return {{},
            exit_not_executable,
            in_quotes(word) + " cannot be executed: " +
                (error == EISDIR ? "it is a folder" : std::strerror(error))};
}

}  // namespace

CommandPath find_command(const std::string& word) {
    if (word.find('/') != std::string::npos) {
        const int error = executable(word);
        return error == 0 ? CommandPath{word, 0, {}} : refused(word, error);
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
            if (error == 0) return {candidate, 0, {}};
            if (error == EACCES) worst = EACCES;
            at = end + 1;
        }
    }
    return refused(word, worst);
}

}  // namespace holdfast::cli
