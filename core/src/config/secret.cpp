// Reads a secret when it is needed, so that the next reconnect uses a rotated one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "config/secret.hpp"

namespace holdfast::spi {
namespace {

constexpr std::size_t longest_line = 64 * 1024;

struct OpenFile {
    int fd = -1;
    explicit OpenFile(int f) : fd(f) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (fd >= 0) ::close(fd);
    }
};

std::string system_text(int code) {
    return std::system_category().message(code);
}

// The first line without its end, and without the mark that editors put before UTF-8: neither can
// be meant as a part of the secret.
std::string first_line_of(std::string text) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
    text.resize(std::min(text.find('\n'), text.size()));
    if (!text.empty() && text.back() == '\r') text.pop_back();
    return text;
}

// `problem` is set when the file has no secret.
std::string secret_in(const std::string& path, std::string& problem) {
    // O_NONBLOCK: a FIFO must not hold up the engine's thread; it is then refused below.
    const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat facts {};
    if (file.fd < 0 || ::fstat(file.fd, &facts) != 0) {
        problem = "cannot be read (" + system_text(errno) + ")";
        return {};
    }
    if (!S_ISREG(facts.st_mode)) {
        problem = "is not a regular file";
        return {};
    }
    if ((facts.st_mode & S_IWOTH) != 0) {
        problem = "may be written by every user of this machine (chmod 600 it)";
        return {};
    }
    std::string line;
    std::array<char, 4096> block{};
    while (true) {
        const ssize_t n = ::read(file.fd, block.data(), block.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            problem = "cannot be read (" + system_text(errno) + ")";
            return {};
        }
        line.append(block.data(), static_cast<std::size_t>(n));
        if (n == 0 || line.find('\n') != std::string::npos) break;
        if (line.size() > longest_line) {
            problem = "has a first line longer than 64 KiB";
            return {};
        }
    }
    line = first_line_of(std::move(line));
    if (line.empty()) problem = "has an empty first line";
    return line;
}

std::string readable_by_all(const char* what, const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0 || (facts.st_mode & S_IROTH) == 0) return {};
    return "The " + std::string(what) + " \"" + path +
           "\" may be read by every user of this machine (chmod 600 it).";
}

}  // namespace

std::string exposure(const Settings& settings) {
    // Whatever the password is for: "password_file", "sentinel_password_file".
    for (const auto& [name, path] : settings.values)
        if (name.ends_with("password_file") && !path.empty())
            if (auto text = readable_by_all("password file", path); !text.empty()) return text;
    return {};
}

std::string key_exposure(const Settings& settings) {
    const auto file = settings.values.find("tls_key_file");
    if (file == settings.values.end()) return {};
    return readable_by_all("private key", file->second);
}

Answer<std::string> Secret::read() const {
    std::string problem, secret;
    switch (source_) {
        case Source::none:
            return std::string();
        case Source::literal:
            return where_;
        case Source::file:
            secret = secret_in(where_, problem);
            if (!problem.empty()) problem = "The password file \"" + where_ + "\" " + problem + ".";
            break;
        case Source::environment: {
            const char* value = ::secure_getenv(where_.c_str());
            if (value) secret = first_line_of(value);
            if (secret.empty())
                problem = "The environment variable " + where_ +
                          (value ? " has an empty first line." : " is not set.");
            break;
        }
    }
    if (problem.empty()) return secret;
    return Failure(errc::bad_config, std::move(problem));
}

}  // namespace holdfast::spi
